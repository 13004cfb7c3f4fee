// Items as boxes, as wide as they are big: a flame graph with the root below, or an icicle graph with the root above.
"use strict";

const BOX = 20;
/** Boxes narrower than this many pixels are not drawn, nor are those within them. */
const LEAST_WIDTH = 0.6;

/**
 * The boxes of items, from left to right and level by level: `x` and `width` in shares of the whole.
 * @param {Item[]} items
 * @param {number} least the least width that is kept
 */
function layOutBoxes(items, least) {
  const total = items.reduce((sum, item) => sum + Math.max(0, item.size), 0);
  const boxes = [];
  const todo = [{ items, x: 0, scale: total > 0 ? 1 / total : 0, depth: 0, parent: -1 }];
  while (todo.length > 0) {
    const { items: kids, x: start, scale, depth, parent } = todo.pop();
    let x = start;
    for (const item of kids) {
      const width = Math.max(0, item.size) * scale;
      if (width >= least) {
        boxes.push({ item, x, width, depth, parent });
        // The kids of a box never stick out of it.
        const inside = item.kids.reduce((sum, kid) => sum + Math.max(0, kid.size), 0);
        const fits = inside * scale > width ? width / inside : scale;
        if (item.kids.length > 0) {
          todo.push({ items: item.kids, x, scale: fits, depth: depth + 1, parent: boxes.length - 1 });
        }
      }
      x += width;
    }
  }
  return boxes;
}

/** What the colour of a box stands for: the crate, or of a report the first part of its name. */
function wordOf(/** @type {Item} */ item) {
  return item.crate ?? item.name.split("/")[0];
}

/** The places of the biggest words, the widest first: the ten colours go to these, and none twice. */
function ranksOf(/** @type {Item[]} */ items) {
  const widths = new Map();
  for (const { item, width } of layOutBoxes(items, LEAST_WIDTH / 1500)) {
    const word = wordOf(item);
    widths.set(word, (widths.get(word) ?? 0) + (word === "" ? 0 : width));
  }
  return new Map([...widths].sort((a, b) => b[1] - a[1]).map(([word], rank) => [word, rank]));
}

class Flame {
  constructor({ describe, choose }) {
    this.describe = describe;
    this.choose = choose;
    this.active = 0;
    this.width = this.height = 0;
    this.crumbs = element("nav", { className: "crumbs", "aria-label": "Where the graph is" });
    this.canvas = element("canvas", { className: "flame", tabIndex: 0 });
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "flame graph");
    this.words = element("p", { className: "unseen", "aria-live": "polite" });
    this.tip = element("div", { className: "tip", hidden: true });
    this.legend = element("ul", { className: "legend" });
    this.scroller = element("div", { className: "scroller" }, this.canvas);
    this.host = element("div", { className: "flames" }, this.crumbs, this.legend, this.scroller, this.words, this.tip);
    this.canvas.addEventListener("mousemove", event => this.onMove(event));
    this.canvas.addEventListener("mouseleave", () => this.point(-1));
    this.canvas.addEventListener("click", event => this.onClick(event));
    this.canvas.addEventListener("keydown", event => this.onKey(event));
    this.canvas.addEventListener("focus", () => this.speak());
    this.canvas.addEventListener("blur", () => this.draw());
  }

  /**
   * @param {Item[]} items
   * @param {{ name: string, isUpwards: boolean, colour: string, find: string, way: string[], text: (item: Item) => string }} look
   */
  show(items, look) {
    this.look = look;
    this.way = followWay(items, look.way);
    this.items = this.way.length > 0 ? [this.way[this.way.length - 1]] : items;
    this.ranks = ranksOf(items);
    this.crumbs.hidden = this.way.length === 0;
    this.crumbs.replaceChildren(button("Whole graph", () => this.enter([])),
      ...this.way.map((item, depth) => button(item.name || NAMELESS, () => this.enter(look.way.slice(0, depth + 1)),
        { disabled: depth + 1 === this.way.length })));
    this.canvas.setAttribute("aria-label", `${look.name}: arrow keys move from box to box, Enter goes into one, Backspace out`);
    this.active = 0;
    this.pointed = -1;
    this.resize();
  }

  resize() {
    const width = Math.max(280, this.scroller.clientWidth);
    this.boxes = layOutBoxes(this.items, LEAST_WIDTH / width);
    this.depth = this.boxes.reduce((most, { depth }) => Math.max(most, depth), 0) + 1;
    const height = this.depth * BOX + 2;
    const scale = devicePixelRatio || 1;
    [this.width, this.height] = [width, height];
    Object.assign(this.canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    this.ink = this.canvas.getContext("2d");
    this.ink.setTransform(scale, 0, 0, scale, 0, 0);
    this.colours = coloursOf(this.host);
    this.drawLegend();
    this.draw();
    const top = this.scroller.getBoundingClientRect().top + scrollY;
    this.scroller.style.maxHeight = `${Math.max(300, innerHeight - Math.min(top, innerHeight) - 64)}px`;
    if (this.look.isUpwards) {
      this.scroller.scrollTop = height;
    }
  }

  place({ x, width, depth }) {
    const top = this.look.isUpwards ? this.height - (depth + 1) * BOX : depth * BOX;
    return { left: x * this.width, top, width: width * this.width };
  }

  draw() {
    const { ink } = this;
    if (!ink) {
      return;
    }
    ink.clearRect(0, 0, this.width, this.height);
    ink.font = "12px system-ui, sans-serif";
    ink.textBaseline = "middle";
    const wanted = this.look.find.toLowerCase();
    this.boxes.forEach((box, index) => {
      const { left, top, width } = this.place(box);
      const isFound = wanted === "" || box.item.name.toLowerCase().includes(wanted);
      ink.fillStyle = !isFound ? this.colours.pale : wanted !== "" ? this.colours.found : this.colourOf(box.item);
      ink.fillRect(left, top, Math.max(0.5, width - (width > 3 ? 1 : 0)), BOX - 1);
      if (width > 26) {
        ink.fillStyle = isFound ? this.colours.label : this.colours.quiet;
        ink.fillText(labelFor(box.item, width - 8, text => ink.measureText(text).width), left + 4, top + BOX / 2);
      }
      if (index === this.pointed || (index === this.active && document.activeElement === this.canvas)) {
        ink.strokeStyle = this.colours.text;
        ink.lineWidth = 2;
        ink.strokeRect(left + 1, top + 1, Math.max(1, width - 3), BOX - 3);
      }
    });
  }

  colourOf(item) {
    const { colours } = this;
    if (this.look.colour === "change" && item.before !== undefined) {
      const change = changeOf(item);
      return change > 0 ? colours.grown : change < 0 ? colours.shrunk : colours.neutral;
    }
    if (this.look.colour === "state" && item.unreported !== undefined) {
      if (item.twice * 2 > item.size) {
        return colours.twice;
      }
      return item.unreported * 2 > item.size ? colours.dark : item.unreported * 20 > item.size ? colours.mixed : colours.once;
    }
    const word = wordOf(item);
    return word === "" ? colours.neutral : colours.crates[(this.ranks.get(word) ?? hashOf(word)) % colours.crates.length];
  }

  drawLegend() {
    const { colours, look } = this;
    const sums = new Map();
    for (const { item, width } of this.boxes) {
      const colour = this.colourOf(item);
      const word = look.colour === "crate" ? item.crate ?? "" : "";
      sums.set(word, { colour, width: (sums.get(word)?.width ?? 0) + width });
    }
    const crates = [...sums].filter(([word]) => word !== "").sort((a, b) => b[1].width - a[1].width).slice(0, 8)
      .map(([word, { colour }]) => [word, colour]);
    const entries = {
      state: [["reported once", colours.once], ["more than a twentieth unreported", colours.mixed],
        ["mostly unreported", colours.dark], ["mostly reported twice", colours.twice]],
      change: [["grown", colours.grown], ["shrunk", colours.shrunk], ["the same", colours.neutral]],
      crate: crates,
    }[look.colour] ?? [];
    this.legend.replaceChildren(...entries.map(([text, colour]) => {
      const swatch = element("span", { className: "swatch", "aria-hidden": "true" });
      swatch.style.backgroundColor = colour;
      return element("li", {}, swatch, text);
    }));
    this.legend.hidden = entries.length === 0;
  }

  boxAt(event) {
    const [x, y] = [event.offsetX / this.width, event.offsetY];
    const depth = Math.floor((this.look.isUpwards ? this.height - y : y) / BOX);
    return this.boxes.findIndex(box => box.depth === depth && x >= box.x && x < box.x + box.width);
  }

  onMove(event) {
    const at = this.boxAt(event);
    this.point(at);
    if (at >= 0) {
      const room = this.host.getBoundingClientRect();
      const left = event.clientX - room.left;
      this.tip.style.left = `${Math.max(0, Math.min(left + 14, room.width - 330))}px`;
      this.tip.style.top = `${event.clientY - room.top + 18}px`;
    }
  }

  point(at) {
    if (at === this.pointed) {
      return;
    }
    this.pointed = at;
    const item = this.boxes[at]?.item;
    this.tip.hidden = !item;
    if (item) {
      this.tip.replaceChildren(element("strong", {}, item.name || NAMELESS), element("br"), this.look.text(item));
    }
    this.describe(item ?? this.boxes[this.active]?.item ?? null);
    this.draw();
  }

  onClick(event) {
    const at = this.boxAt(event);
    if (at >= 0) {
      this.active = at;
      this.tip.hidden = true;
      this.enterBox(at);
    }
  }

  /** Goes into a box; into the box that is the root already, out again. */
  enterBox(at) {
    const ids = [];
    for (let box = at; box >= 0; box = this.boxes[box].parent) {
      ids.unshift(this.boxes[box].item.id);
    }
    const base = this.look.way.slice(0, -1);
    const isRoot = this.look.way.length > 0 && ids.length === 1;
    this.enter(isRoot ? base : [...base, ...ids]);
  }

  enter(way) {
    // Keys that are pressed before the graph is drawn again go on from here.
    this.look.way = way;
    this.choose({ at: way.length > 0 ? JSON.stringify(way) : "" });
    this.canvas.focus({ preventScroll: true });
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const isUp = this.look.isUpwards;
    const moves = {
      [isUp ? "ArrowUp" : "ArrowDown"]: () => this.boxes.findIndex(({ parent }) => parent === this.active),
      [isUp ? "ArrowDown" : "ArrowUp"]: () => this.boxes[this.active]?.parent,
      ArrowRight: () => this.beside(1),
      ArrowLeft: () => this.beside(-1),
      Home: () => 0,
    };
    if (moves[event.key]) {
      event.preventDefault();
      const to = moves[event.key]();
      this.active = to >= 0 ? to : this.active;
      this.speak();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.enterBox(this.active);
    } else if (event.key === "Backspace" && this.look.way.length > 0) {
      event.preventDefault();
      this.enter(this.look.way.slice(0, -1));
    }
  }

  beside(step) {
    const here = this.boxes[this.active];
    const level = this.boxes.map((box, index) => ({ box, index })).filter(({ box }) => box.depth === here.depth)
      .sort((a, b) => a.box.x - b.box.x);
    return level[level.findIndex(({ index }) => index === this.active) + step]?.index ?? -1;
  }

  speak() {
    const item = this.boxes[this.active]?.item;
    this.words.textContent = item ? `${item.name || NAMELESS}, ${this.look.text(item)}` : "";
    this.describe(item ?? null);
    this.draw();
  }
}

/** The longest form of a name that fits, without generics first. */
function labelFor(item, room, widthOf) {
  const forms = item.kind === "frame" ? shorterNames(item.name) : [item.name, ...shorterNames(item.name)];
  const fitting = forms.find(form => widthOf(form) <= room);
  if (fitting !== undefined) {
    return fitting;
  }
  const last = forms[forms.length - 1] ?? "";
  const letters = Math.floor(room / Math.max(1, widthOf(last) / Math.max(1, last.length))) - 1;
  return letters >= 2 ? `${last.slice(0, letters)}…` : "";
}

/** The colours of drawings, from the style sheet. */
function coloursOf(host) {
  const style = getComputedStyle(host);
  const named = name => style.getPropertyValue(`--${name}`).trim();
  return {
    text: named("text"), quiet: named("quiet"), label: named("label"), pale: named("pale"), found: named("found"),
    once: named("box-once"), dark: named("box-dark"), twice: named("box-twice"), mixed: named("box-mixed"),
    grown: named("box-grown"), shrunk: named("box-shrunk"), neutral: named("box-neutral"),
    crates: Array.from({ length: 10 }, (_, number) => named(`crate${number}`)),
  };
}

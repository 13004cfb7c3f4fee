// A tree as areas: each measurement is a rectangle of its size, within that of its parent; a click goes into one.
"use strict";

/** Rectangles below this many square pixels are not divided further. */
const LEAST_AREA = 900;
const LABEL_HEIGHT = 18;

/**
 * Places amounts in a rectangle so that each is as near to a square as can be: rows are filled along the shorter side for as
 * long as that makes the worst of them better. The amounts come largest first.
 */
function squarify(amounts, { x, y, width, height }) {
  const placed = [];
  let total = amounts.reduce((sum, amount) => sum + amount, 0);
  let next = 0;
  while (next < amounts.length && total > 0 && width > 0 && height > 0) {
    const side = Math.min(width, height);
    const scale = (width * height) / total;
    let [count, sum, best] = [0, 0, Infinity];
    for (let end = next; end < amounts.length; end++) {
      const worst = worstRatio(amounts[next], amounts[end], sum + amounts[end], { side, scale });
      if (worst > best) {
        break;
      }
      [best, sum, count] = [worst, sum + amounts[end], count + 1];
    }
    const depth = (sum * scale) / side;
    let along = 0;
    for (const amount of amounts.slice(next, next + count)) {
      const length = (amount / sum) * side;
      placed.push(width >= height
        ? { x, y: y + along, width: depth, height: length }
        : { x: x + along, y, width: length, height: depth });
      along += length;
    }
    [x, y, width, height] = width >= height
      ? [x + depth, y, width - depth, height]
      : [x, y + depth, width, height - depth];
    total -= sum;
    next += count;
  }
  return placed;
}

function worstRatio(greatest, least, sum, { side, scale }) {
  const depth = (sum * scale) / side;
  const ratio = amount => {
    const length = (amount * scale) / depth;
    return Math.max(length / depth, depth / length);
  };
  return Math.max(ratio(greatest), ratio(least));
}

class Treemap {
  constructor(host, describe) {
    this.host = host;
    this.describe = describe;
    this.path = [];
  }

  /** Shows the trees of a page of which the amounts are bytes; `key` tells one moment from another. */
  show(page, bytes) {
    this.bytes = bytes;
    const trees = page.processes.flatMap(process =>
      [process.explicit, ...process.trees].filter(tree => tree && tree.unit === Unit.bytes && tree.total > 0)
        .map(tree => ({ name: `${tree.root.shown} (${process.name})`, tree })));
    this.trees = trees;
    const known = trees.find(({ name }) => name === this.chosen) ?? trees[0];
    this.chosen = known?.name;
    this.follow(known);
    this.draw();
  }

  /** Stays where it was, as far as that is still there. */
  follow(known) {
    const names = this.path.slice(1).map(line => line.shown);
    this.path = known ? [known.tree.root] : [];
    for (const name of names) {
      const kid = this.path.at(-1)?.kids.find(line => line.shown === name);
      if (!kid) {
        break;
      }
      this.path.push(kid);
    }
  }

  draw() {
    if (this.path.length === 0) {
      this.host.replaceChildren(element("p", {}, "No tree of bytes is left to draw."));
      return;
    }
    const select = element("select", { "aria-label": "Tree" },
      ...this.trees.map(({ name }) => element("option", { value: name, selected: name === this.chosen }, name)));
    select.addEventListener("change", () => {
      this.chosen = select.value;
      this.path = [this.trees.find(({ name }) => name === select.value).tree.root];
      this.draw();
    });
    const crumbs = element("nav", { className: "crumbs", "aria-label": "Where the treemap is" }, select,
      ...this.path.map((line, depth) => this.crumb(line, depth)));
    const frame = element("div", { className: "frame" });
    this.host.replaceChildren(crumbs, frame);
    const width = Math.max(300, Math.floor(this.host.clientWidth));
    const height = Math.max(320, Math.floor(innerHeight - frame.getBoundingClientRect().top - 70));
    const drawing = svg("svg", { class: "treemap", viewBox: `0 0 ${width} ${height}`, width, height, role: "group",
      "aria-label": `Treemap of ${this.path.map(line => line.shown).join("/")}` });
    this.divide(this.path.at(-1), { x: 0, y: 0, width, height }, { drawing, depth: 0, colour: 0 });
    frame.append(drawing);
  }

  crumb(line, depth) {
    const isHere = depth + 1 === this.path.length;
    const text = `${line.shown} ${formatAmount(line.amount, Unit.bytes, this.bytes)}`;
    const crumb = element("button", { type: "button", disabled: isHere }, text);
    crumb.addEventListener("click", () => this.goTo(this.path.slice(0, depth + 1)));
    return crumb;
  }

  goTo(path) {
    this.path = path;
    this.draw();
    this.host.querySelector(".crumbs button:last-of-type")?.focus();
  }

  divide(line, area, { drawing, depth, colour }) {
    const kids = line.kids.filter(kid => kid.amount > 0).sort((a, b) => b.amount - a.amount);
    const places = squarify(kids.map(kid => kid.amount), area);
    places.forEach((place, index) => {
      const kid = kids[index];
      if (place.width < 1 || place.height < 1) {
        return;
      }
      const own = depth === 0 ? index % 8 : colour;
      drawing.append(this.cell(kid, place, { depth, colour: own }));
      if (place.width * place.height > LEAST_AREA && place.height > LABEL_HEIGHT + 12 && place.width > 24) {
        const inside = {
          x: place.x + 2, y: place.y + LABEL_HEIGHT, width: place.width - 4, height: place.height - LABEL_HEIGHT - 2,
        };
        this.divide(kid, inside, { drawing, depth: depth + 1, colour: own });
      }
    });
    // What is measured of a line and not of its kids has no rectangle: a tree has none such.
  }

  cell(line, { x, y, width, height }, { depth, colour }) {
    const value = formatAmount(line.amount, Unit.bytes, this.bytes);
    const group = svg("g", { class: `cell colour${colour} depth${Math.min(depth, 3)}` },
      svg("rect", { x, y, width, height }),
      svg("title", {}, `${line.shown} ${value}${line.description ? `\n${line.description}` : ""}`));
    const room = Math.floor((width - 8) / 6.6);
    if (room >= 3 && height >= LABEL_HEIGHT) {
      const name = `${line.shown} ${value}`;
      const text = name.length <= room ? name : `${name.slice(0, room - 1)}…`;
      group.append(svg("text", { x: x + 4, y: y + 13 }, text));
    }
    if (line.kids.length > 0 && depth === 0) {
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
    }
    group.addEventListener("click", () => this.enter(line));
    group.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        this.enter(line);
      }
    });
    for (const kind of ["mouseover", "focus"]) {
      group.addEventListener(kind, () => this.describe(line));
    }
    return group;
  }

  /** Goes to the line, or to the parent of one without kids, by all that lie between. */
  enter(line) {
    const here = this.path.at(-1);
    const way = wayTo(here, line);
    const target = line.kids.length > 0 ? way : way.slice(0, -1);
    if (target.length > 0) {
      this.goTo([...this.path, ...target]);
    }
  }
}

/** The lines from below `from` down to `to`. */
function wayTo(from, to) {
  for (const kid of from.kids) {
    if (kid === to) {
      return [kid];
    }
    if (to.id.startsWith(kid.id)) {
      const rest = wayTo(kid, to);
      if (rest.length > 0) {
        return [kid, ...rest];
      }
    }
  }
  return [];
}

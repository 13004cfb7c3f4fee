// A tree of items as a table: sorted by any column, folded and entered by keys, drawn as far as it is in sight.
"use strict";

const ROW = 28;
/** The rows beyond the edges that are drawn too. */
const BEYOND = 12;
/** Text for rows that have no name. */
const NAMELESS = "(no name)";

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title
 * @property {(item: Item) => string} text
 * @property {boolean} [isText]
 */

/** What marks the kind of an item, in words for those who do not see it. */
const BADGES = {
  frame: ["fn", "function"], type: ["type", "type"], scope: ["scope", "scope"], state: ["", ""], reporter: ["rep", "reporter"],
  thread: ["thr", "thread"], static: ["static", "static"], leaked: ["leak", "leaked"], cycles: ["cycle", "cycles"],
};

class Table {
  /**
   * @param {{ folds: Folds, describe: (item: Item | null) => void, choose: (change: Record<string, string>) => void }} page
   */
  constructor({ folds, describe, choose }) {
    this.folds = folds;
    this.describe = describe;
    this.choose = choose;
    this.rows = [];
    this.drawn = new Map();
    this.active = 0;
    this.crumbs = element("nav", { className: "crumbs", "aria-label": "Where the table is" });
    this.head = element("div", { className: "head", role: "row" });
    this.body = element("div", { className: "rows", role: "rowgroup" });
    this.grid = element("div", { className: "grid", role: "treegrid", tabIndex: 0 },
      element("div", { className: "heads", role: "rowgroup" }, this.head), this.body);
    this.host = element("div", { className: "table" }, this.crumbs, this.grid);
    this.grid.addEventListener("scroll", () => this.scheduleDraw());
    this.grid.addEventListener("keydown", event => this.onKey(event));
    this.grid.addEventListener("focus", () => this.describe(this.rows[this.active]?.item ?? null));
    this.body.addEventListener("click", event => this.onClick(event));
    this.body.addEventListener("dblclick", event => this.onDoubleClick(event));
    this.body.addEventListener("mouseover", event => this.describe(this.itemAt(event.target)));
    this.body.addEventListener("mouseleave", () => this.describe(this.rows[this.active]?.item ?? null));
  }

  /**
   * @param {Item[]} items
   * @param {{ columns: Column[], name: string, sort: string, way: string[], view: string }} look
   */
  show(items, look) {
    const activeId = this.rows[this.active]?.item.id;
    const isSame = this.look?.view === look.view && this.look?.way.join() === look.way.join();
    if (this.look?.columns.map(({ key }) => key).join() !== look.columns.map(({ key }) => key).join()) {
      // Rows have cells for the columns there were.
      this.body.replaceChildren();
      this.drawn.clear();
    }
    this.look = look;
    const way = followWay(items, look.way);
    this.way = way;
    this.items = way.length > 0 ? [way[way.length - 1]] : items;
    this.greatest = this.items.reduce((most, item) => Math.max(most, Math.abs(item.size)), 1);
    this.grid.setAttribute("aria-label", look.name);
    this.grid.setAttribute("aria-colcount", String(look.columns.length));
    this.grid.dataset.columns = look.columns.map(({ key }) => key).join(" ");
    this.host.className = `table has-${look.columns.map(({ key }) => key).join(" has-")}`;
    this.drawCrumbs(items);
    this.drawHead();
    this.layOut();
    const place = isSame ? this.rows.findIndex(({ item }) => item.id === activeId) : -1;
    this.active = Math.max(0, place);
    this.fit();
    if (!isSame) {
      this.grid.scrollTop = 0;
    }
    this.draw(true);
  }

  /** Gives the table the rest of the window's height, and at least some rows. */
  fit() {
    const top = this.grid.getBoundingClientRect().top + scrollY;
    this.grid.style.maxHeight = `${Math.max(8 * ROW, innerHeight - Math.min(top, innerHeight / 2) - 64)}px`;
  }

  drawCrumbs(items) {
    this.crumbs.hidden = this.way.length === 0;
    const whole = button("Whole tree", () => this.enter([]));
    this.crumbs.replaceChildren(whole, ...this.way.map((item, depth) => button(item.name || NAMELESS,
      () => this.enter(this.look.way.slice(0, depth + 1)), { disabled: depth + 1 === this.way.length })));
    this.roots = items;
  }

  drawHead() {
    const { columns, sort } = this.look;
    this.head.replaceChildren(...columns.map(({ key, title, isText }, index) => {
      const isSorted = sort.replace("-", "") === key;
      const cell = element("div", { role: "columnheader", className: `cell ${key}`, "aria-colindex": index + 1 });
      cell.setAttribute("aria-sort", !isSorted ? "none" : sort.startsWith("-") !== isText ? "ascending" : "descending");
      if (Object.hasOwn(SORTS, key)) {
        const next = !isSorted ? key : sort.startsWith("-") ? "" : `-${key}`;
        cell.append(button(title, () => this.choose({ sort: next }), { tabIndex: 0 }));
        cell.classList.toggle("sorted", isSorted);
        cell.classList.toggle("upwards", isSorted && sort.startsWith("-"));
      } else {
        cell.textContent = title;
      }
      return cell;
    }));
  }

  /** Makes the list of rows that are unfolded. */
  layOut() {
    this.rows = [];
    const todo = [];
    const push = (items, level) => {
      for (let index = items.length - 1; index >= 0; index--) {
        todo.push({ item: items[index], level, place: index + 1, count: items.length });
      }
    };
    push(this.items, 1);
    while (todo.length > 0) {
      const row = todo.pop();
      this.rows.push(row);
      row.isOpen = row.item.kids.length > 0 && this.isOpen(row.item);
      if (row.isOpen) {
        push(row.item.kids, row.level + 1);
      }
    }
    this.grid.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.body.style.height = `${this.rows.length * ROW}px`;
  }

  isOpen(item) {
    const isRoot = this.way.length > 0 && item === this.items[0];
    return this.folds.get(this.foldOf(item)) ?? (isRoot || item.isOpen);
  }

  foldOf(item) {
    return this.look.view === "trees" ? item.id : `${this.look.view} ${item.id}`;
  }

  scheduleDraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw(false);
    });
  }

  /** Draws the rows in sight; those drawn before stay, unless all are drawn `anew`. */
  draw(anew) {
    const first = Math.max(0, Math.floor(this.grid.scrollTop / ROW) - BEYOND);
    const last = Math.min(this.rows.length, Math.ceil((this.grid.scrollTop + this.grid.clientHeight) / ROW) + BEYOND);
    const spare = [];
    for (const [index, row] of this.drawn) {
      if (anew || index < first || index >= last) {
        spare.push(row);
        this.drawn.delete(index);
      }
    }
    const made = document.createDocumentFragment();
    for (let index = first; index < last; index++) {
      if (!this.drawn.has(index)) {
        // To fill a row that is there takes half the time of making one.
        const known = spare.pop();
        const row = known ?? this.newRow();
        this.fillRow(row, this.rows[index], index);
        this.drawn.set(index, row);
        if (!known) {
          made.append(row);
        }
      }
    }
    spare.forEach(row => row.remove());
    this.body.append(made);
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.putInOrder(), 200);
    if (this.drawn.has(this.active)) {
      this.grid.setAttribute("aria-activedescendant", this.drawn.get(this.active).id);
    } else {
      this.grid.removeAttribute("aria-activedescendant");
    }
  }

  /** Once nothing moves, the rows stand in the document as they are seen: selections and screen readers go by that order. */
  putInOrder() {
    const rows = [...this.drawn].sort(([a], [b]) => a - b).map(([, row]) => row);
    if (rows.some((row, place) => this.body.children[place] !== row)) {
      this.body.append(...rows);
    }
  }

  /** A row with its cells, still empty. */
  newRow() {
    const row = element("div", { role: "row" });
    row.append(...this.look.columns.map(({ key, isText }, at) => {
      const cell = element("div", { className: `cell ${key}`, role: at === 0 ? "rowheader" : "gridcell", "aria-colindex": at + 1 });
      if (key === "name") {
        cell.append(element("span", { className: "fold", "aria-hidden": "true" }));
      } else if (key === "size") {
        cell.append(element("span", { className: "bar", "aria-hidden": "true" }), element("span", {}, ""));
      } else if (key === "change" || isText) {
        cell.append(element("span", {}, ""));
      }
      return cell;
    }));
    return row;
  }

  fillRow(row, { item, level, place, count, isOpen }, index) {
    row.className = `row is-${item.kind}`;
    row.id = `row-${index}`;
    row.style.top = `${index * ROW}px`;
    row.dataset.row = index;
    row.setAttribute("aria-level", level);
    row.setAttribute("aria-posinset", place);
    row.setAttribute("aria-setsize", count);
    row.setAttribute("aria-rowindex", index + 2);
    row.setAttribute("aria-selected", index === this.active);
    if (item.kids.length > 0) {
      row.setAttribute("aria-expanded", isOpen);
    } else {
      row.removeAttribute("aria-expanded");
    }
    this.look.columns.forEach((column, at) => this.fillCell(row.children[at], column, item, level));
  }

  /**
   * @param {HTMLElement} cell
   * @param {Column} column
   * @param {Item} item
   * @param {number} level
   */
  fillCell(cell, { key, text, isText = false }, item, level) {
    if (key === "name") {
      this.fillName(cell, item, level);
      return;
    }
    const words = text(item);
    const inner = /** @type {HTMLElement} */ (cell.lastElementChild);
    if (key === "size") {
      const isKnown = item.hasSize && !item.isSizeUnknown;
      this.fillBar(/** @type {HTMLElement} */ (cell.firstElementChild), item, isKnown);
      inner.className = isKnown && item.isInvalid ? "invalid" : "";
      setText(inner, words);
    } else if (key === "change") {
      const change = changeOf(item);
      inner.className = change > 0 ? "grown" : change < 0 ? "shrunk" : "same";
      setText(inner, words);
    } else if (isText) {
      inner.title = words;
      setText(inner, words);
    } else {
      setText(cell, words);
    }
  }

  /** Fills the cell of the name: the fold, which stays, then a badge, the name, and notes. */
  fillName(cell, item, level) {
    cell.style.paddingLeft = `${6 + Math.min(level - 1, 40) * (innerWidth <= 600 ? 8 : 14)}px`;
    // A census names its axis already.
    const [badge, words] = this.look.view === "census" ? ["", ""] : BADGES[item.kind] ?? ["", ""];
    const known = cell.lastElementChild;
    if (badge === "" && item.notes.length === 0 && cell.childNodes.length === 2 && known.className === "name") {
      known.title = item.name;
      setText(known, this.nameOf(item));
      return;
    }
    cell.replaceChildren(cell.firstElementChild,
      ...(badge === "" ? [] : [element("span", { className: `badge ${item.kind}`, title: words }, badge), " "]),
      element("span", { className: "name", title: item.name }, this.nameOf(item)),
      ...item.notes.map(note => element("span", { className: `note ${note === "impossible" ? "invalid" : ""}` }, note)));
  }

  /** A name; of a function on a narrow page, its end. */
  nameOf({ name, kind }) {
    const isShort = kind === "frame" && innerWidth <= 600;
    return (isShort ? shorterNames(name)[1] ?? shorterNames(name)[0] : name) || NAMELESS;
  }

  /** A bar as long as the share, in parts of what is unreported and reported twice where that is known. */
  fillBar(bar, item, isKnown) {
    const whole = item.whole > 0 ? item.whole : this.greatest;
    const [dark, twice] = [item.unreported ?? 0, item.twice ?? 0];
    let made = 0;
    for (const [name, amount] of isKnown ? [["once", item.size - dark - twice], ["dark", dark], ["twice", twice]] : []) {
      const share = Math.max(0, Math.min(1, amount / whole));
      if (share > 0) {
        const part = bar.children[made] ?? bar.appendChild(element("span"));
        part.className = `part ${name}`;
        part.style.width = `${100 * share}%`;
        made++;
      }
    }
    while (bar.children.length > made) {
      bar.lastElementChild.remove();
    }
  }

  indexAt(target) {
    const row = target.closest?.(".row");
    return row && this.body.contains(row) ? Number(row.dataset.row) : -1;
  }

  itemAt(target) {
    return this.rows[this.indexAt(target)]?.item ?? null;
  }

  onClick(event) {
    const index = this.indexAt(event.target);
    // Whoever selects text does not want it folded away.
    if (index >= 0 && getSelection()?.isCollapsed !== false) {
      this.activate(index);
      if (event.target.closest(".fold, .name, .badge") && event.detail < 2) {
        this.toggle(index);
      }
      this.grid.focus({ preventScroll: true });
    }
  }

  onDoubleClick(event) {
    const index = this.indexAt(event.target);
    if (index >= 0 && this.rows[index].item.kids.length > 0) {
      this.enterRow(index);
    }
  }

  activate(index) {
    this.drawn.get(this.active)?.setAttribute("aria-selected", "false");
    this.active = Math.max(0, Math.min(index, this.rows.length - 1));
    const top = this.active * ROW;
    const room = this.grid.clientHeight - ROW;
    if (top < this.grid.scrollTop) {
      this.grid.scrollTop = top;
    } else if (top + ROW > this.grid.scrollTop + room) {
      this.grid.scrollTop = top + ROW - room;
    }
    this.draw(false);
    this.drawn.get(this.active)?.setAttribute("aria-selected", "true");
    this.describe(this.rows[this.active]?.item ?? null);
  }

  toggle(index) {
    const { item, isOpen } = this.rows[index];
    if (item.kids.length === 0) {
      return;
    }
    const fold = this.foldOf(item);
    if (this.folds.has(fold)) {
      this.folds.delete(fold);
    } else {
      this.folds.set(fold, !isOpen);
    }
    this.layOut();
    this.draw(true);
    this.activate(index);
  }

  /** Makes the item of a row the root. */
  enterRow(index) {
    const ids = [];
    let level = Infinity;
    for (let at = index; at >= 0; at--) {
      if (this.rows[at].level < level) {
        ids.unshift(this.rows[at].item.id);
        level = this.rows[at].level;
      }
    }
    this.enter([...this.look.way.slice(0, -1), ...ids]);
  }

  enter(way) {
    this.active = 0;
    // Keys that are pressed before the table is drawn again go on from here.
    this.look.way = way;
    this.choose({ at: way.length > 0 ? JSON.stringify(way) : "" });
    this.grid.focus({ preventScroll: true });
  }

  onKey(event) {
    const row = this.rows[this.active];
    if (event.target !== this.grid || !row || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const page = Math.max(1, Math.floor(this.grid.clientHeight / ROW) - 2);
    const moves = {
      ArrowDown: () => this.activate(this.active + 1),
      ArrowUp: () => this.activate(this.active - 1),
      PageDown: () => this.activate(this.active + page),
      PageUp: () => this.activate(this.active - page),
      Home: () => this.activate(0),
      End: () => this.activate(this.rows.length - 1),
      ArrowRight: () => (row.item.kids.length > 0 && !row.isOpen ? this.toggle(this.active)
        : row.isOpen && this.activate(this.active + 1)),
      ArrowLeft: () => (row.isOpen ? this.toggle(this.active) : this.activate(this.parentOf(this.active))),
      " ": () => this.toggle(this.active),
      Enter: () => row.item.kids.length > 0 && this.enterRow(this.active),
      Backspace: () => this.look.way.length > 0 && this.enter(this.look.way.slice(0, -1)),
    };
    if (moves[event.key]) {
      event.preventDefault();
      moves[event.key]();
    }
  }

  parentOf(index) {
    for (let above = index - 1; above >= 0; above--) {
      if (this.rows[above].level < this.rows[index].level) {
        return above;
      }
    }
    return index;
  }
}

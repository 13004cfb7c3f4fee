// The trees on the page: rows that are drawn when they come into sight, folded and unfolded by mouse and keyboard, and copied
// as text whether they are drawn or not.
"use strict";

/** Rows that are drawn at once. */
const CHUNK = 250;
const ROW_HEIGHT = 20;

/** The signs of functions, types and scopes in the text. Few fonts have them: they are seen as letters, and copied as they are. */
const LETTERS = { "ƒ": "f", "Ⓣ": "T", "Ⓢ": "S" };
const SIGN = /^( +)([ƒⓉⓈ])(?= )/;

class Outline {
  /** `folds` remembers what is open; `describe` is told of the line that has the mouse or the focus. */
  constructor(host, folds, describe) {
    this.host = host;
    this.folds = folds;
    this.describe = describe;
    this.blocks = [];
    this.observer = new IntersectionObserver(
      entries => entries.filter(entry => entry.isIntersecting).forEach(entry => this.draw(entry.target)),
      { rootMargin: "1500px" });
    host.addEventListener("click", event => this.onClick(event));
    host.addEventListener("keydown", event => this.onKey(event));
    host.addEventListener("focusin", event => this.describe(this.rowAt(event.target)?.line));
    host.addEventListener("mouseover", event => this.describe(this.rowAt(event.target)?.line));
  }

  show(blocks, bytes) {
    const focused = this.rowAt(document.activeElement)?.line?.id;
    this.bytes = bytes;
    this.observer.disconnect();
    this.blocks = blocks;
    const elements = blocks.map((block, index) => {
      block.index = index;
      block.element = element("div", { className: `block ${block.kind}` });
      if (!block.lines) {
        block.element.setAttribute("role", "tree");
        const name = block.tree ? block.tree.root.shown : block.flats ? "single measurements" : "blocks";
        block.element.setAttribute("aria-label", `${name} of ${block.process}`);
      }
      this.layOut(block);
      return block.element;
    });
    this.host.replaceChildren(...elements);
    this.drawWhatIsInSight();
    this.focusAgain(focused);
  }

  /** Goes back to the line that had the focus before an update, where it is still there. */
  focusAgain(id) {
    if (id === undefined) {
      return;
    }
    for (const block of this.blocks) {
      const index = block.rows.findIndex(row => row.line?.id === id);
      if (index >= 0) {
        this.focus(block, index, { isQuiet: true });
        return;
      }
    }
  }

  /** Makes the rows of a block, and room for them. */
  layOut(block) {
    block.rows = rowsOf(block, this.bytes, this.folds);
    const chunks = [];
    for (let first = 0; first < block.rows.length; first += CHUNK) {
      const chunk = element("div", { className: "chunk", role: "presentation" });
      const count = Math.min(CHUNK, block.rows.length - first);
      Object.assign(chunk, { block, first, count, isDrawn: false });
      chunk.style.height = `${count * ROW_HEIGHT}px`;
      chunks.push(chunk);
    }
    block.element.replaceChildren(...chunks);
    // One row of each tree can be reached by the tab key; the arrows lead to the others.
    block.active = Math.min(block.active ?? 0, block.rows.length - 1);
    chunks.forEach(chunk => this.observer.observe(chunk));
  }

  drawWhatIsInSight() {
    for (const { element: { children } } of this.blocks) {
      for (const chunk of children) {
        const { top, bottom } = chunk.getBoundingClientRect();
        if (bottom >= 0 && top <= innerHeight) {
          this.draw(chunk);
        }
      }
    }
  }

  draw(chunk) {
    if (chunk.isDrawn) {
      return;
    }
    chunk.isDrawn = true;
    this.observer.unobserve(chunk);
    const rows = chunk.block.rows.slice(chunk.first, chunk.first + chunk.count);
    chunk.replaceChildren(...rows.map((row, index) => this.drawRow(chunk.block, row, chunk.first + index)));
    chunk.style.height = "";
  }

  drawRow(block, row, index) {
    const drawn = element("div", { className: "row" });
    drawn.dataset.row = index;
    if (!row.line) {
      drawn.textContent = row.text;
      return drawn;
    }
    drawn.setAttribute("role", "treeitem");
    drawn.setAttribute("aria-level", row.level);
    drawn.setAttribute("aria-posinset", row.place[0]);
    drawn.setAttribute("aria-setsize", row.place[1]);
    drawn.tabIndex = index === block.active ? 0 : -1;
    if (row.hasKids) {
      drawn.setAttribute("aria-expanded", row.isOpen);
    }
    if (row.line.description !== "") {
      drawn.title = row.line.description;
    }
    drawn.append(...piecesOf(row).flatMap(([className, text]) => {
      const [, blank, sign] = text.match(SIGN) ?? [];
      return sign === undefined ? [element("span", { className }, text)]
        : [blank, element("span", { className: "sign" }, LETTERS[sign]), element("span", { className }, text.slice(blank.length + sign.length))];
    }));
    return drawn;
  }

  rowElement(block, index) {
    const chunk = block.element.children[Math.floor(index / CHUNK)];
    if (chunk) {
      this.draw(chunk);
    }
    return chunk?.children[index % CHUNK];
  }

  rowAt(target) {
    const { block, index } = this.placeOf(target) ?? {};
    return block?.rows[index];
  }

  placeOf(target) {
    const row = (target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement)?.closest(".row");
    const chunk = row?.parentElement;
    return chunk?.block ? { block: chunk.block, index: Number(row.dataset.row) } : null;
  }

  onClick(event) {
    const place = this.placeOf(event.target);
    // Whoever selects text does not want it folded away.
    if (place && getSelection().isCollapsed && place.block.rows[place.index].line) {
      this.focus(place.block, place.index);
      this.toggle(place);
    }
  }

  /** Opens what is closed, and the other way round; what somebody touched twice is as it was. */
  toggle({ block, index }) {
    const { line, hasKids, isOpen } = block.rows[index];
    if (!hasKids) {
      return;
    }
    if (this.folds.has(line.id)) {
      this.folds.delete(line.id);
    } else {
      this.folds.set(line.id, !isOpen);
    }
    block.active = index;
    this.layOut(block);
    this.drawWhatIsInSight();
    this.focus(block, index);
  }

  focus(block, index, { isQuiet = false } = {}) {
    const before = this.rowElement(block, block.active);
    if (before) {
      before.tabIndex = -1;
    }
    block.active = index;
    const row = this.rowElement(block, index);
    row.tabIndex = 0;
    row.focus({ preventScroll: true });
    if (!isQuiet) {
      row.scrollIntoView({ block: "nearest" });
    }
  }

  onKey(event) {
    const place = this.placeOf(event.target);
    if (!place || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const { block, index } = place;
    const row = block.rows[index];
    const moves = {
      ArrowDown: () => this.move(place, 1),
      ArrowUp: () => this.move(place, -1),
      ArrowRight: () => (row.hasKids && !row.isOpen ? this.toggle(place) : row.isOpen && this.move(place, 1)),
      ArrowLeft: () => (row.isOpen ? this.toggle(place) : this.moveToParent(place)),
      Home: () => this.focus(block, 0),
      End: () => this.focus(block, block.rows.length - 1),
      Enter: () => this.toggle(place),
      " ": () => this.toggle(place),
    };
    if (moves[event.key]) {
      event.preventDefault();
      moves[event.key]();
    }
  }

  /** To the next row of a tree, also of the next tree. */
  move({ block, index }, step) {
    const next = index + step;
    if (block.rows[next]) {
      this.focus(block, next);
      return;
    }
    let other = block.index + step;
    while (this.blocks[other] && this.blocks[other].lines) {
      other += step;
    }
    if (this.blocks[other]) {
      this.focus(this.blocks[other], step > 0 ? 0 : this.blocks[other].rows.length - 1);
    }
  }

  moveToParent({ block, index }) {
    for (let above = index - 1; above >= 0; above--) {
      if (block.rows[above].level < block.rows[index].level) {
        this.focus(block, above);
        return;
      }
    }
  }

  /** What a selection covers of the rows, drawn or not; null if it covers none. */
  selectedText(selection) {
    if (selection.isCollapsed || selection.rangeCount === 0) {
      return null;
    }
    const range = selection.getRangeAt(0);
    if (!range.intersectsNode(this.host)) {
      return null;
    }
    const all = this.blocks.flatMap(block => block.rows);
    const start = this.pointOf(range.startContainer, range.startOffset) ??
      (range.comparePoint(this.host, 0) >= 0 ? { row: 0, offset: 0 } : null);
    const end = this.pointOf(range.endContainer, range.endOffset) ?? { row: all.length, offset: 0 };
    if (!start) {
      return null;
    }
    const lines = all.slice(start.row, end.row + 1).map(textOf);
    const isToTheEnd = end.row === all.length || (end.row + 1 === all.length && end.offset >= lines.at(-1).length);
    if (!isToTheEnd) {
      lines[lines.length - 1] = lines.at(-1).slice(0, end.offset);
    }
    if (lines.length > 0) {
      lines[0] = lines[0].slice(start.offset);
    }
    // All of it ends with its last line's end, as what the command line prints does.
    return lines.join("\n") + (isToTheEnd && start.row === 0 && start.offset === 0 ? "\n" : "");
  }

  /** Which row a point of the document is in, counted over all blocks, and how far in. */
  pointOf(container, offset) {
    if (!this.host.contains(container)) {
      return null;
    }
    const node = container.nodeType === Node.ELEMENT_NODE ? container.childNodes[offset] ?? container : container;
    const place = this.placeOf(node) ?? this.placeOf(container);
    if (place) {
      const range = document.createRange();
      range.selectNodeContents(this.rowElement(place.block, place.index));
      range.setEnd(container, offset);
      return { row: this.rowsBefore(place.block) + place.index, offset: range.toString().length };
    }
    const parent = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
    const chunk = parent.closest(".chunk") ?? parent.closest(".block")?.firstElementChild;
    return chunk ? { row: this.rowsBefore(chunk.block) + chunk.first, offset: 0 } : null;
  }

  rowsBefore(block) {
    return this.blocks.slice(0, block.index).reduce((sum, { rows }) => sum + rows.length, 0);
  }
}

// The rows of a page of trees. The text of a row is what Firefox's page gives to the clipboard, and what the command line
// prints.
"use strict";

/** Rows of plain text, and trees, in the order in which they are read. */
function blocksOf(page) {
  /** @type {any[]} */
  const blocks = [];
  const say = (kind, lines) => blocks.push({ kind, lines });
  say("total", [`Total resident memory (approximate) -- ${page.total}`]);
  for (const process of page.processes) {
    const name = inOneLine(process.name);
    say("process", name === "" ? [] : [name]);
    say("warning", process.warnings.flatMap(warning => ["", warning]).concat(invalidLines(process.invalid)));
    if (process.explicit) {
      say("section", ["Explicit Allocations", ""]);
      blocks.push({ kind: "tree", process: process.name, tree: process.explicit });
      say("blank", [""]);
    }
    if (process.trees.length > 0 || process.flats.length > 0) {
      say("section", ["Other Measurements", ""]);
    }
    for (const tree of process.trees) {
      blocks.push({ kind: "tree", process: process.name, tree });
      say("blank", [""]);
    }
    if (process.flats.length > 0) {
      blocks.push({ kind: "flats", process: process.name, flats: process.flats });
      say("blank", [""]);
    }
    say("end", [inOneLine(`End of ${process.name}`)]);
  }
  if (page.processes.length === 0) {
    say("empty", ["No results found."]);
  }
  return blocks.filter(block => block.kind === "tree" || block.kind === "flats" || block.lines.length > 0);
}

function invalidLines(paths) {
  if (paths.length === 0) {
    return [];
  }
  return [
    "", "WARNING: the following values are negative or unreasonably large.", "",
    // Firefox's page has a blank behind the last one.
    ...paths.map((path, index) => `    ${inOneLine(path)}${index + 1 === paths.length ? " " : ""}`), "",
    "This indicates a defect in one or more memory reporters. The invalid values are highlighted.",
  ];
}

/** The rows of a block that are in sight. `folds` says which lines somebody has opened (true) or closed, by their ids. */
function rowsOf(block, bytes, folds) {
  if (block.lines) {
    return block.lines.map(text => ({ text }));
  }
  if (block.heap) {
    return heapRows(block, folds);
  }
  if (block.kind === "flats") {
    const values = block.flats.map(({ root, unit }) => formatAmount(root.amount, unit, bytes));
    const widest = values.reduce((most, value) => Math.max(most, value.length), 0);
    return block.flats.map((tree, index) =>
      newRow(tree, tree.root, { indent: " ".repeat(widest - values[index].length), value: values[index], level: 1, folds }));
  }
  const rows = [];
  const todo = [{ line: block.tree.root, above: "", own: "", below: "", parentWidth: 0, level: 1, place: [1, 1] }];
  while (todo.length > 0) {
    const { line, above, own, below, parentWidth, level, place } = todo.pop();
    const value = formatAmount(line.amount, block.tree.unit, bytes);
    const filler = Math.max(0, parentWidth - value.length);
    const row = newRow(block.tree, line, { indent: above + own + "─".repeat(filler), value, level, place, folds });
    rows.push(row);
    if (!row.isOpen) {
      continue;
    }
    const indent = above + below + " ".repeat(filler);
    for (let index = line.kids.length - 1; index >= 0; index--) {
      const [kidOwn, kidBelow] = index + 1 === line.kids.length ? ["└──", "   "] : ["├──", "│  "];
      todo.push({
        line: line.kids[index], above: indent, own: kidOwn, below: kidBelow, parentWidth: value.length, level: level + 1,
        place: [index + 1, line.kids.length],
      });
    }
  }
  return rows;
}

function newRow(tree, line, { indent, value, level, place = [1, 1], folds }) {
  const hasKids = line.kids.length > 0;
  const isOpen = hasKids && (folds.get(line.id) ?? line.showsKids);
  // An invalid line whose kids are out of sight is marked as open all the same, as in Firefox, until somebody touches it.
  const looksOpen = folds.get(line.id) ?? line.isOpen;
  return { tree, line, indent, value, level, place, hasKids, isOpen, mark: !hasKids ? "──" : looksOpen ? "--" : "++" };
}

/** The pieces of a row with their classes; together they are its text. */
function piecesOf({ tree, line, indent, value, mark, pieces: known }) {
  if (known) {
    return known;
  }
  const pieces = [["indent", indent], [line.isInvalid ? "value invalid" : "value", value]];
  if (!tree.isFlat) {
    pieces.push(["share", ` (${formatShare(line.amount, tree.total)})`]);
  }
  pieces.push(["mark", ` ${mark} `], ["name", asCopied(line.shown)]);
  const notes = [
    line.isInvalid && ["note invalid", " [?!]"],
    line.merged > 0 && ["note", ` [${line.merged}]`],
    line.presence === Presence.first && ["note gone", " [-]"],
    line.presence === Presence.second && ["note new", " [+]"],
    line.presence === Presence.added && ["note", " [!]"],
  ];
  pieces.push(...notes.filter(Boolean));
  return pieces;
}

function textOf(row) {
  return row.text ?? piecesOf(row).map(([, text]) => text).join("");
}

/** Text as copying gives it: no NUL, and plain blanks for those that forbid a break. */
function asCopied(text) {
  return text.replaceAll("\0", "").replaceAll("\u00a0", " ");
}

/** Text of a heading or list as copying gives it: what HTML takes for blanks is one blank, and none at the ends. */
function inOneLine(text) {
  return text.replaceAll("\0", "").split(/[ \t\n\r]+/).filter(word => word !== "").join(" ").replaceAll("\u00a0", " ");
}

// Heap details: the blocks of a dump broken down by scope, stack and type, one within the other in any order. The text is what
// `about-memory heap` prints.
"use strict";

/** The orders that can be chosen, as the command line calls them, with what people read. */
const ORDERS = {
  "stack,type": "stack, then type", "type,stack": "type, then stack", "scope,type,stack": "scope, type, stack",
  "scope,stack,type": "scope, stack, type", "type,scope,stack": "type, scope, stack",
};

/** In the order in which nodes of one size stand. */
const MARKS = { frame: "ƒ ", type: "Ⓣ ", scope: "Ⓢ ", noScope: "(in no scope)", own: "<self>" };
const RANKS = Object.keys(MARKS);

/** The node of all blocks that are wanted, with its kids. What has less than `cut` percent of them is one node. */
function breakDown(heap, { by, cut, within }) {
  const { rows, stacks, functions, scopes, texts } = heap;
  const has = functions.map(name => name.includes(within));
  const blocks = rows.stack.flatMap((stack, row) => {
    const frames = stacks[stack];
    // Stacks begin at the outermost function of that name; the innermost stands first.
    const left = within === "" ? frames.length : frames.findLastIndex(frame => has[frame]) + 1;
    return left > 0 ? [{ row, frames, left, names: scopes[rows.scope[row]], entered: 0 }] : [];
  });
  const sum = (blocks, column) => blocks.reduce((sum, { row }) => sum + column[row], 0);
  const node = (kind, name, blocks) => ({ kind, name, bytes: sum(blocks, rows.bytes), blocks: sum(blocks, rows.blocks), kids: [] });
  const root = node("root", "", blocks);
  const group = (blocks, kind, keyOf, textOf) => {
    const groups = Map.groupBy(blocks, keyOf);
    return [...groups].map(([key, blocks]) => ({ ...node(kind, textOf(key), blocks), of: blocks }));
  };
  const finish = (nodes, next) => {
    const shown = nodes.filter(({ bytes }) => percent(bytes, root.bytes) >= cut);
    const small = nodes.filter(({ bytes }) => percent(bytes, root.bytes) < cut);
    shown.sort((a, b) => b.bytes - a.bytes || RANKS.indexOf(a.kind) - RANKS.indexOf(b.kind) || (a.name < b.name ? -1 : 1));
    const kids = shown.map(({ of, ...kid }) => ({ ...kid, kids: kidsOf(of, next(kid)) }));
    if (small.length > 0) {
      const all = column => small.reduce((sum, kid) => sum + kid[column], 0);
      const name = `<other>: ${small.length} below ${cut}%${small.length === 1 ? "" : " each"}`;
      kids.push({ kind: "other", name, bytes: all("bytes"), blocks: all("blocks"), kids: [] });
    }
    return kids;
  };
  const breaks = {
    type(blocks, by, rest) {
      return finish(group(blocks, "type", ({ row }) => rows.type[row], name => texts[name] ?? "[unknown]"), () => rest);
    },
    stack(blocks, by, rest) {
      const own = blocks.filter(({ left }) => left === 0);
      const called = blocks.filter(({ left }) => left > 0).map(block => ({ ...block, left: block.left - 1 }));
      if (called.length === 0) {
        return kidsOf(own, rest);
      }
      const kids = group(called, "frame", ({ frames, left }) => frames[left], frame => functions[frame]);
      return finish(own.length > 0 ? [...kids, { ...node("own", "", own), of: own }] : kids, ({ kind }) => (kind === "own" ? rest : by));
    },
    scope(blocks, by, rest) {
      const isOutermost = blocks.some(({ entered }) => entered === 0);
      const own = blocks.filter(({ names, entered }) => names.length === entered);
      const inside = blocks.filter(({ names, entered }) => names.length > entered);
      if (inside.length === 0 && !isOutermost) {
        return kidsOf(own, rest);
      }
      const kids = group(inside.map(block => ({ ...block, entered: block.entered + 1 })), "scope",
        ({ names, entered }) => names[entered - 1], name => texts[name]);
      const left = own.length > 0 ? [{ ...node(isOutermost ? "noScope" : "own", "", own), of: own }] : [];
      return finish([...kids, ...left], ({ kind }) => (kind === "scope" ? by : rest));
    },
  };
  const kidsOf = (blocks, by) => (by.length > 0 ? breaks[by[0]](blocks, by, by.slice(1)) : []);
  root.kids = kidsOf(blocks, by);
  return root;
}

function percent(part, whole) {
  return whole === 0 ? 0 : (100 * part) / whole;
}

/** With two digits. What is in the middle between two, eighths alone, goes to the even one, as on the command line. */
function percentOf(part, whole) {
  const share = percent(part, whole);
  const below = Math.floor(share * 100);
  const isInTheMiddle = (share * 8) % 2 === 1;
  return `${(isInTheMiddle ? (below + (below % 2)) / 100 : share).toFixed(2)}%`;
}

/** What the outline shows: what is above the tree, and the tree. */
function heapBlocks(heap, wishes) {
  const root = breakDown(heap, wishes);
  const all = heap.rows.bytes.reduce((sum, bytes) => sum + bytes, 0);
  const heading = [
    `${heap.program}: ${heap.isEstimate ? "about " : ""}${plain.format(root.bytes)} ${heap.amount} bytes in ` +
      `${plain.format(root.blocks)} blocks, ${percentOf(root.bytes, all)} of the heap`,
    ...(wishes.within === "" ? heap.accounts : []).map(([sign, bytes, what]) =>
      `${sign} ${plain.format(bytes).padStart(15)}  ${what}`),
    "", `${"bytes".padStart(15)} ${"share".padStart(8)} ${"blocks".padStart(11)}`,
  ];
  const name = `heap by ${wishes.by.join(", ")}`;
  return [{ kind: "heading", lines: heading }, { kind: "heap", process: name, heap: root }];
}

/** The rows of the tree that are in sight. A node that is all of its parent is not indented further. */
function heapRows({ heap: root, process }, folds) {
  const rows = [];
  const todo = [];
  const push = (kids, depth, level, path) => {
    for (let index = kids.length - 1; index >= 0; index--) {
      todo.push({ node: kids[index], depth, level, path, place: [index + 1, kids.length] });
    }
  };
  push(root.kids, 0, 1, "");
  while (todo.length > 0) {
    const { node, depth, level, path, place } = todo.pop();
    const name = (MARKS[node.kind] ?? "") + node.name;
    const own = `${path}${path && " / "}${name}`;
    const line = { id: `${process}:${own}`, description: "" };
    const hasKids = node.kids.length > 0;
    const isOpen = hasKids && (folds.get(line.id) ?? true);
    const share = percentOf(node.bytes, root.bytes);
    const pieces = [
      ["value", plain.format(node.bytes).padStart(15)], ["share", ` ${share.padStart(8)}`],
      ["share", ` ${plain.format(node.blocks).padStart(11)}`], ["name", `  ${"  ".repeat(depth)}${name}`],
    ];
    rows.push({ line, level, place, hasKids, isOpen, pieces });
    if (isOpen) {
      push(node.kids, node.kids.length === 1 && depth > 0 ? depth : depth + 1, level + 1, own);
    }
  }
  return rows;
}

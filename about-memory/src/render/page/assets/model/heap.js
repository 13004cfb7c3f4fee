// The heap of a dump: its blocks broken down by scope, stack, type and others, one within the other in any order. The text is
// what `about-memory heap tree` prints.
"use strict";

/** The orders that can be chosen, as the command line calls them, with what people read. */
const ORDERS = {
  "stack,type": "stack, then type", "type,stack": "type, then stack", "scope,type,stack": "scope, type, stack",
  "scope,stack,type": "scope, stack, type", "type,scope,stack": "type, scope, stack",
  "state,type": "reported or not, then type", "state,stack": "reported or not, then stack",
  "reporter,type,stack": "reporter, type, stack", "thread,stack,type": "thread, stack, type",
};

/** In the order in which nodes of one size stand. */
const MARKS = { frame: "ƒ ", type: "Ⓣ ", scope: "Ⓢ ", noScope: "(in no scope)", own: "<self>" };
const UNTRACKED = "(from before tracking began or while it was off)";
const RANKS = Object.keys(MARKS);

/** The states of blocks, with what people read. */
const STATES = {
  "unreported": "unreported", "twice-reported": "reported twice", "once-reported": "reported once", "live": "live",
  "cumulative": "allocated",
};

/**
 * @typedef {object} HeapNode
 * @property {string} kind
 * @property {string} name
 * @property {number} bytes
 * @property {number} blocks
 * @property {number} before the bytes at the earlier moment, in a difference
 * @property {number} unreported bytes that no reporter covers
 * @property {number} twice bytes that several cover
 * @property {any[]} of
 * @property {HeapNode[]} kids
 */

/** Returns the number of calls of each node of a call tree, itself among them. */
function depthsOf({ calls }) {
  if (!calls.depths) {
    const { up } = calls;
    const depths = new Uint16Array(up.length);
    for (let node = 0; node < up.length; node++) {
      depths[node] = up[node] === 0 ? 1 : depths[node - up[node]] + 1;
    }
    // The depths of a heap do not change.
    Object.defineProperty(calls, "depths", { value: depths, enumerable: false });
  }
  return calls.depths;
}

/** Returns the functions of a stack, innermost first. */
function framesOf({ calls: { up, function: functions } }, stack) {
  const frames = [functions[stack]];
  for (let node = stack; up[node] > 0;) {
    node -= up[node];
    frames.push(functions[node]);
  }
  return frames;
}

/**
 * The blocks that are wanted, row by row, with the functions of all their stacks in one list: those of a block begin at `start`.
 * `only` is `state:…`, `reporter:…` or empty.
 */
function wantedBlocks(heap, { within = "", only = "", isInverted = false }) {
  const { rows, calls, scopes, texts } = heap;
  const { up, function: functions } = calls;
  const has = within === "" ? [] : calls.functions.map(name => name.includes(within));
  const depths = depthsOf(heap);
  const frames = new Uint32Array(rows.stack.reduce((sum, stack) => sum + depths[stack], 0));
  let start = 0;
  const [kind, ...rest] = only.split(":");
  const word = rest.join(":");
  const isWanted = row => kind === "" ? true : kind === "state" ? rows.state?.[row] === word
    : isBelow(texts[rows.reporter?.[row]] ?? "", word);
  const blocks = [];
  for (let row = 0; row < rows.stack.length; row++) {
    if (!isWanted(row)) {
      continue;
    }
    const stack = rows.stack[row];
    let count = depths[stack];
    if (within !== "") {
      // Stacks begin at the outermost function of that name.
      let [node, inner] = [stack, 0];
      count = 0;
      for (;;) {
        inner += 1;
        count = has[functions[node]] ? inner : count;
        if (up[node] === 0) {
          break;
        }
        node -= up[node];
      }
    }
    if (count > 0) {
      for (let at = 0, node = stack; at < count; at++) {
        frames[isInverted ? start + at : start + count - 1 - at] = functions[node];
        node -= up[node];
      }
      blocks.push({ row, start, count, names: scopes[rows.scope[row]] });
      start += count;
    }
  }
  return { blocks, frames };
}

/** Returns whether a path is another or below it. */
function isBelow(path, other) {
  return path === other || path.startsWith(`${other}/`);
}

/**
 * The node of all blocks that are wanted, with its kids. What has less than `cut` percent of them is one node.
 * @returns {HeapNode}
 */
function breakDown(heap, wishes) {
  const { by, cut, within = "", only = "" } = wishes;
  const { rows, scopes, calls: { functions }, texts } = heap;
  // By stack, the sums of the call tree are enough: rows are not gone through level by level.
  const isByCalls = by[0] === "stack" && within === "" && only === "" && !wishes.isInverted;
  const { blocks, frames } = isByCalls ? { blocks: [], frames: new Uint32Array() } : wantedBlocks(heap, wishes);
  const add = (node, row) => {
    const bytes = rows.bytes[row];
    node.bytes += bytes;
    node.blocks += rows.blocks[row];
    node.before += rows.before?.[row] ?? 0;
    node.unreported += rows.state?.[row] === "unreported" ? bytes : 0;
    node.twice += rows.state?.[row] === "twice-reported" ? bytes : 0;
  };
  const node = (kind, name, of) => {
    const made = { kind, name, bytes: 0, blocks: 0, before: 0, unreported: 0, twice: 0, of, kids: [] };
    for (const { row } of of) {
      add(made, row);
    }
    return made;
  };
  const isDiff = Boolean(rows.before);
  const weight = ({ bytes, before }) => isDiff ? Math.abs(bytes - before) : bytes;
  const root = node("root", "", blocks);
  if (isByCalls) {
    for (let row = 0; row < rows.stack.length; row++) {
      add(root, row);
    }
  }
  const untracked = within === "" && only === "" ? heap.untracked : { bytes: 0, blocks: 0 };
  root.bytes += untracked.bytes;
  root.blocks += untracked.blocks;
  root.before += untracked.before ?? 0;
  const whole = isDiff ? Math.max(root.bytes, root.before) : root.bytes;
  const group = (blocks, kind, keyOf, textOf) => {
    const groups = new Map();
    for (const block of blocks) {
      const key = keyOf(block);
      const known = groups.get(key);
      if (known) {
        known.push(block);
      } else {
        groups.set(key, [block]);
      }
    }
    return [...groups].map(([key, of]) => node(kind, textOf(key), of));
  };
  /** The nodes that are shown, with what `kidsIn` makes of each, and the small ones as one. */
  const finish = (nodes, kidsIn) => {
    const isSmall = ({ bytes, before }) => percent(isDiff ? Math.max(bytes, before) : bytes, whole) < cut;
    const shown = nodes.filter(node => !isSmall(node));
    const small = nodes.filter(isSmall);
    shown.sort((a, b) => weight(b) - weight(a) || b.bytes - a.bytes || RANKS.indexOf(a.kind) - RANKS.indexOf(b.kind) ||
      (a.name < b.name ? -1 : 1));
    shown.forEach(node => makeLate(node, "kids", () => kidsIn(node)));
    if (small.length > 0) {
      const name = `<other>: ${small.length} below ${cut}%${small.length === 1 ? "" : " each"}`;
      const other = node("other", name, []);
      for (const key of ["bytes", "blocks", "before", "unreported", "twice"]) {
        other[key] = small.reduce((sum, node) => sum + node[key], 0);
      }
      shown.push(other);
    }
    return shown;
  };
  /** The nodes of the call tree. */
  const byCalls = () => {
    const sums = callSums(heap);
    const nodeOf = call => ({
      kind: "frame", name: functions[heap.calls.function[call]], bytes: sums.bytes[call], blocks: sums.blocks[call],
      before: sums.before[call], unreported: sums.unreported[call], twice: sums.twice[call], of: [], kids: [], call,
    });
    const kidsOfCall = call => {
      const own = sums.own(call).map(row => ({ row, names: scopes[rows.scope[row]] }));
      const nodes = sums.kids(call).map(nodeOf);
      return nodes.length === 0 ? kidsOf(own, by.slice(1))
        : finish(own.length > 0 ? [...nodes, node("own", "", own)] : nodes,
          made => (made.kind === "own" ? kidsOf(made.of, by.slice(1)) : kidsOfCall(made.call)));
    };
    return finish(sums.roots.map(nodeOf), made => kidsOfCall(made.call));
  };
  const simply = (kind, keyOf, textOf) => (blocks, by) =>
    finish(group(blocks, kind, keyOf, textOf), ({ of }) => kidsOf(of, by.slice(1)));
  // What blocks are broken down by, at `depth` frames or scopes from the outermost.
  const breaks = {
    type: simply("type", ({ row }) => rows.type[row], name => texts[name] ?? "[unknown]"),
    state: simply("state", ({ row }) => rows.state?.[row] ?? "live", state => STATES[state] ?? state),
    reporter: simply("reporter", ({ row }) => rows.reporter?.[row], name => texts[name] ?? "(no reporter)"),
    thread: simply("thread", ({ row }) => rows.thread?.[row], name => texts[name] ?? "(unknown thread)"),
    stack(blocks, by, depth) {
      const own = blocks.filter(({ count }) => count === depth);
      if (own.length === blocks.length) {
        return kidsOf(own, by.slice(1));
      }
      const nodes = group(own.length > 0 ? blocks.filter(({ count }) => count > depth) : blocks, "frame",
        ({ start }) => frames[start + depth], frame => functions[frame]);
      return finish(own.length > 0 ? [...nodes, node("own", "", own)] : nodes,
        ({ kind, of }) => (kind === "own" ? kidsOf(of, by.slice(1)) : kidsOf(of, by, depth + 1)));
    },
    scope(blocks, by, depth) {
      const own = blocks.filter(({ names }) => names.length === depth);
      if (own.length === blocks.length && depth > 0) {
        return kidsOf(own, by.slice(1));
      }
      const nodes = group(blocks.filter(({ names }) => names.length > depth), "scope",
        ({ names }) => names[depth], name => texts[name]);
      const left = own.length > 0 ? [node(depth === 0 ? "noScope" : "own", "", own)] : [];
      return finish([...nodes, ...left],
        ({ kind, of }) => (kind === "scope" ? kidsOf(of, by, depth + 1) : kidsOf(of, by.slice(1))));
    },
  };
  const kidsOf = (blocks, by, depth = 0) => (by.length > 0 ? breaks[by[0]](blocks, by, depth) : []);
  root.kids = isByCalls ? byCalls() : kidsOf(blocks, by);
  if (untracked.blocks > 0) {
    root.kids.push({ ...node("untracked", UNTRACKED, []), ...untracked });
  }
  return root;
}

/** Gives an object a property whose value is made when it is first read: most nodes are never in sight. */
function makeLate(/** @type {any} */ object, /** @type {string} */ name, /** @type {() => any} */ make) {
  const is = { configurable: true, enumerable: true };
  const settle = value => Object.defineProperty(object, name, { ...is, value, writable: true });
  Object.defineProperty(object, name, {
    ...is, set: settle,
    get() {
      const value = make();
      settle(value);
      return value;
    },
  });
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
  const all = heap.rows.bytes.reduce((sum, bytes) => sum + bytes, heap.untracked.bytes);
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

/** The rows of the tree that are in sight. */
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
      push(node.kids, depth + 1, level + 1, own);
    }
  }
  return rows;
}

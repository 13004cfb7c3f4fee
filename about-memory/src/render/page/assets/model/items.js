// The items of all views: rows of a table, boxes of a flame graph, areas of a treemap. What a view shows becomes items here.
"use strict";

/**
 * @typedef {object} Item
 * @property {string} id unlike any other of its view, and the same after an update
 * @property {string} name
 * @property {string} kind
 * @property {number} size
 * @property {number} [before] the size at the earlier moment, in a difference
 * @property {number} [blocks]
 * @property {number} [own] the size without the kids, where it is known
 * @property {number} whole what its share is of
 * @property {number} unit
 * @property {number} [unreported]
 * @property {number} [twice]
 * @property {string} [crate]
 * @property {string} description
 * @property {string[]} notes
 * @property {boolean} [isInvalid]
 * @property {boolean} [isSizeUnknown] whether only the change is known
 * @property {string} [path] of a report
 * @property {boolean} isOpen whether the kids are in sight at first
 * @property {boolean} hasSize
 * @property {Item[]} kids
 */

/** @returns {Item} */
function newItem(id, name, fields) {
  return {
    id, name, kind: "", size: 0, whole: 0, unit: Unit.bytes, description: "", notes: [], isOpen: true, hasSize: true, kids: [],
    ...fields,
  };
}

/** The items of a page of reports: in each process its trees, and its single measurements together. */
function itemsOfReports(page, isDiff) {
  const processes = page.processes.map(process => {
    const trees = [process.explicit, ...process.trees].filter(Boolean);
    const kids = trees.map(tree => itemOfLine(tree, tree.root, isDiff));
    if (process.flats.length > 0) {
      kids.push(newItem(`${process.name}:\n`, "Single measurements", {
        kind: "group", hasSize: false, isOpen: trees.length === 0 || page.processes.length === 1,
        kids: process.flats.map(tree => itemOfLine(tree, tree.root, isDiff)),
      }));
    }
    return newItem(process.name, process.name, { kind: "process", hasSize: false, kids });
  });
  return processes.length === 1 ? processes[0].kids : processes;
}

function itemOfLine(tree, line, isDiff) {
  const { shown, amount, description, isInvalid, path } = line;
  const item = newItem(line.id, shown, {
    kind: line.isGathering ? "other" : "report", size: isDiff ? 0 : amount, before: isDiff ? -amount : undefined,
    whole: tree.isFlat ? 0 : tree.total, unit: tree.unit, description, isInvalid,
    isOpen: line.showsKids, path, notes: notesOf(line),
  });
  if (line.kids.length > 0) {
    makeLate(item, "kids", () => line.kids.map(kid => itemOfLine(tree, kid, isDiff)));
  }
  return item;
}

const NO_NOTES = [];

function notesOf({ merged, presence, isInvalid }) {
  if (merged === 0 && presence === Presence.both && !isInvalid) {
    return NO_NOTES;
  }
  return [merged > 0 && `${merged} reports`, presence === Presence.first && "gone",
    presence === Presence.second && "new", isInvalid && "impossible"].filter(Boolean);
}

/** The items of a heap that is broken down. At first those with a hundredth of the whole are open. */
function itemsOfHeap(root, isDiff) {
  const whole = isDiff ? Math.max(root.bytes, root.before) : root.bytes;
  const itemsIn = (node, above) => node.kids.map(kid => {
    const name = kid.kind === "noScope" ? MARKS.noScope : kid.kind === "own" ? "itself" : kid.name;
    const id = `${above}${kid.kind}:${kid.name}\n`;
    const item = newItem(id, name, {
      kind: kid.kind, size: kid.bytes, blocks: kid.blocks, whole, before: isDiff ? kid.before : undefined,
      unreported: kid.unreported, twice: kid.twice, crate: ["frame", "type"].includes(kid.kind) ? crateOf(kid.name) : "",
      isOpen: 100 * Math.max(kid.bytes, kid.before) >= whole,
    });
    makeLate(item, "kids", () => itemsIn(kid, id));
    return item;
  });
  return itemsIn(root, "");
}

const OWNER_NOTES = {
  several: "held by several", shared: "several hold it",
};

/** The items of the typed tree: which static owns which blocks, through which fields. */
function itemsOfTypes(tree) {
  const itemsIn = (rows, above) => rows.map(row => {
    const id = `${above}${row.name}\n`;
    return newItem(id, row.name, {
      kind: row.is, size: row.bytes, own: row.own, blocks: blocksBelow(row), whole: tree.bytes, crate: crateOf(row.name),
      notes: [row.uncertain && "uncertain", OWNER_NOTES[row.is]].filter(Boolean), isOpen: row.bytes >= tree.bytes / 100,
      description: row.spare > 0 ? `${plain.format(row.spare)} bytes are spare capacity.` : "", kids: itemsIn(row.children, id),
    });
  }).sort((a, b) => b.size - a.size);
  return itemsIn(tree.rows, "");
}

function blocksBelow(row) {
  return row.children.reduce((sum, child) => sum + blocksBelow(child), row.blocks);
}

const HELD = {
  heap: () => "the heap", static: name => name, outside: name => String(name), shared: () => "held by several",
  reported: name => `held by what ${name} reports`, skipped: name => `held by the skipped field ${name}`,
  unknown: () => "held by something unknown", nothing: () => "held by nothing: leaked",
  cycles: count => `${plain.format(count)} ${count === 1 ? "cycle" : "cycles"}`,
  other: count => `${plain.format(count)} smaller ${count === 1 ? "one" : "ones"}`, blocks: name => name,
};

/** The items of the dominator tree: what would be freed with what. */
function itemsOfRetained({ heap }) {
  const itemsIn = (node, above) => node.kids.map((kid, index) => {
    const name = (HELD[kid.is] ?? HELD.blocks)(kid.name ?? "");
    const id = `${above}${name} ${kid.site ?? ""} ${kid.address ?? ""}${kid.is === "other" ? index : ""}\n`;
    return newItem(id, name, {
      kind: kid.is, size: kid.retained, own: kid.own, blocks: kid.blocks || undefined, whole: heap.retained, crate: crateOf(name),
      description: kid.site ? `Allocated in ${kid.site}.` : "", isOpen: kid.retained >= heap.retained / 100, kids: itemsIn(kid, id),
    });
  });
  return itemsIn(heap, "");
}

/** Two lists of items as one: what is only in the earlier one has the size 0. */
function compareItems(before, after) {
  const key = item => item.id;
  const known = new Map(before.map(item => [key(item), item]));
  const both = after.map(item => {
    const was = known.get(key(item));
    known.delete(key(item));
    return { ...item, before: was?.size ?? 0, kids: compareItems(was?.kids ?? [], item.kids) };
  });
  const gone = [...known.values()].map(item => ({ ...item, size: 0, before: item.size, kids: compareItems(item.kids, []) }));
  return [...both, ...gone].sort((a, b) => Math.abs(changeOf(b)) - Math.abs(changeOf(a)));
}

/** How much an item has grown; 0 where nothing is compared. */
function changeOf(/** @type {Item} */ item) {
  return item.before === undefined ? 0 : item.size - item.before;
}

/** All items, each before its kids. */
function* allItems(/** @type {Item[]} */ items) {
  const todo = [...items].reverse();
  while (todo.length > 0) {
    const item = /** @type {Item} */ (todo.pop());
    yield item;
    for (let index = item.kids.length - 1; index >= 0; index--) {
      todo.push(item.kids[index]);
    }
  }
}

/** The items with the text in their name, with those above and below them. An item found has its size; one above keeps its own. */
function findItems(items, text) {
  if (text === "") {
    return items;
  }
  const wanted = text.toLowerCase();
  const search = item => {
    if (item.name.toLowerCase().includes(wanted)) {
      return item;
    }
    const kids = item.kids.map(search).filter(Boolean);
    return kids.length > 0 ? { ...item, kids, isOpen: true } : null;
  };
  return items.map(search).filter(Boolean);
}

/** The sum of the outermost items with the text in their name. */
function sumOfFound(items, text) {
  const wanted = text.toLowerCase();
  let [sum, count] = [0, 0];
  const todo = [...items];
  while (todo.length > 0) {
    const item = todo.pop();
    if (item.name.toLowerCase().includes(wanted)) {
      sum += item.size;
      count++;
    } else {
      todo.push(...item.kids);
    }
  }
  return { sum, count };
}

/** The ways to sort items, each with what is compared. */
const SORTS = {
  size: (a, b) => b.size - a.size, name: (a, b) => compareNames(a.name, b.name), blocks: (a, b) => (b.blocks ?? 0) - (a.blocks ?? 0),
  change: (a, b) => changeOf(b) - changeOf(a), own: (a, b) => (b.own ?? 0) - (a.own ?? 0),
};

/** Items in another order, at every level; `-size` is the other way round. Without a word they stay as they are. */
function sortItems(items, by) {
  const word = by.replace(/^-/, "");
  if (!Object.hasOwn(SORTS, word)) {
    return items;
  }
  const sign = by.startsWith("-") ? -1 : 1;
  return [...items].sort((a, b) => sign * SORTS[word](a, b))
    .map(item => item.kids.length > 0 ? { ...item, kids: sortItems(item.kids, by) } : item);
}

/** The item that a way of ids leads to, with all items on the way: as far as they are there. */
function followWay(items, way) {
  const found = [];
  let among = items;
  for (const id of way) {
    const next = among.find(item => item.id === id);
    if (!next) {
      break;
    }
    found.push(next);
    among = next.kids;
  }
  return found;
}

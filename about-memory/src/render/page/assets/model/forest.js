// Reports become trees, as on about:memory: one node for each path, totals, chains of single kids made one.
"use strict";

const Presence = { both: 0, first: 1, second: 2, added: 3 };

// Names that every object has: Firefox's page loses a flat measurement that is called so.
const RESERVED = new Set(["__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__",
  "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"]);

/** The kids of a node that has none, as most have. Nothing is ever added. */
const NO_KIDS = new Map();

const UNCLASSIFIED = "What the allocator has handed out beyond what the HEAP reports of this tree name; the allocator's " +
  "rounding of unreported blocks is in it.";

/**
 * All processes of a moment, with the reports that `accepts` wants of them. In each, `trees` and `flats` are objects: what
 * they list first is what Firefox lists first.
 */
function growForest(moment, accepts) {
  const processes = Object.create(null);
  const nodes = [];
  // Most reports are of the same process as the one before.
  let last = { name: /** @type {any} */ ({}), process: /** @type {any} */ (null) };
  for (const report of moment.reports) {
    if (report.process !== last.name) {
      last = { name: report.process, process: processOf(processes, report.process, moment.writer) };
    }
    addReport(last.process, nodes, report, accepts);
  }
  markReporters(Object.values(processes), moment.reporters ?? []);
  addTotals(nodes);
  for (const process of Object.values(processes)) {
    addUnclassified(process);
  }
  return Object.values(processes);
}

function addReport(process, nodes, report, accepts) {
  const { path, amount } = report;
  if (path === "resident") {
    process.resident = amount;
  } else if (path === "resident-unique") {
    process.residentUnique = amount;
  }
  if (!accepts(path)) {
    return;
  }
  process.hasReports = true;
  const isFlat = report.segments ? report.segments.length === 1 : !path.includes("/");
  if (isFlat && RESERVED.has(report.segments?.[0] ?? path)) {
    return;
  }
  const node = report.segments
    ? nodeOfSegments(process, report.segments, { isMeant: true, unit: report.units, nodes })
    : nodeOfPath(process, path, { isMeant: false, unit: report.units, nodes });
  if (!isFlat && report.kind === 1 && (report.segments ? report.segments[0] === "explicit" : path.startsWith("explicit/"))) {
    process.heapTotal += amount;
  }
  addAmount(node, report);
}

/** The node of a path. Most paths have the same parent as another one before. */
function nodeOfPath(process, path, made) {
  const end = path.lastIndexOf("/");
  if (end < 0) {
    return nodeOfSegments(process, [path], made);
  }
  const above = path.slice(0, end);
  let parent = process.parents.get(above);
  if (!parent) {
    parent = nodeOfSegments(process, above.split("/"), made, false);
    process.parents.set(above, parent);
  }
  return kidOf(parent, null, path.slice(end + 1), made);
}

/** The node of these names, made if it is not there, as are those above it. */
function nodeOfSegments(process, segments, made, isFlat = segments.length === 1) {
  let node = null;
  for (const segment of segments) {
    node = kidOf(node, isFlat ? process.flats : process.trees, segment, made);
  }
  return node;
}

/** Marks the nodes of these paths in all processes, and all above them: reporters of the program's report there. */
function markReporters(processes, paths) {
  const wanted = new Map();
  for (const path of paths) {
    let at = wanted;
    for (const segment of path.split("/")) {
      if (!at.has(segment)) {
        at.set(segment, new Map());
      }
      at = at.get(segment);
    }
  }
  const roots = processes.flatMap(({ trees, flats }) => [...Object.values(trees), ...Object.values(flats)]);
  const todo = roots.map(root => [root, wanted]);
  while (todo.length > 0) {
    const [node, siblings] = todo.pop();
    const below = siblings.get(node.name);
    if (below) {
      node.hasReporter = true;
      for (const kid of node.kids.values()) {
        todo.push([kid, below]);
      }
    }
  }
}

function processOf(processes, name, writer) {
  const key = name ? String(name) : "";
  processes[key] ??= {
    name: key === "" ? (writer ?? "Main Process") : key,
    isMain: key === "" || key.startsWith("Main Process"),
    hasReports: false, resident: undefined, residentUnique: undefined, heapTotal: 0,
    trees: Object.create(null), flats: Object.create(null),
    // The nodes above others, by their paths.
    parents: new Map(),
  };
  return processes[key];
}

/**
 * The kid of a node of this name, or without a node the root of it among `roots`; made if it is not there.
 * @param {any} parent
 * @param {any} roots
 * @param {string} segment
 * @param {{ isMeant: boolean, unit: number, nodes: any[] }} made how names are written, and what a new node has
 */
function kidOf(parent, roots, segment, { isMeant, unit, nodes }) {
  // A segment on its own is as it is meant; the path writes a slash that is part of a name as a backslash.
  const isLiteral = isMeant && segment.includes("\\");
  const name = isMeant && !isLiteral ? segment.replaceAll("/", "\\") : segment;
  const key = isLiteral ? `\0${name}` : name;
  const known = parent ? parent.kids.get(key) : roots[key];
  if (known) {
    return known;
  }
  const node = newNode(name, isLiteral || !name.includes("\\") ? name : name.replaceAll("\\", "/"), unit);
  node.isRoot = !parent;
  nodes.push(node);
  if (!parent) {
    roots[key] = node;
  } else if (parent.kids === NO_KIDS) {
    parent.kids = new Map([[key, node]]);
  } else {
    parent.kids.set(key, node);
  }
  return node;
}

function newNode(name, shown, unit) {
  return {
    name, shown, unit, isRoot: false, kids: NO_KIDS, amount: undefined, merged: 0, presence: Presence.both, description: "",
    hasReporter: false,
  };
}

function addAmount(node, report) {
  const presence = report._presence ?? Presence.both;
  if (node.amount) {
    node.amount += report.amount;
    node.merged = node.merged === 0 ? 2 : node.merged + 1;
    return;
  }
  // The first report, or the first that is not zero: a zero is replaced, not added to.
  node.amount = report.amount;
  node.presence = presence === Presence.both ? node.presence : presence;
  if (typeof report.description === "string") {
    node.description = report.description;
  }
}

function addTotals(nodes) {
  // A node is made before its kids, so the way back meets every kid before its parent.
  for (let index = nodes.length - 1; index >= 0; index--) {
    const node = nodes[index];
    if (node.kids.size === 1 && !node.isRoot) {
      absorbOnlyKid(node);
    } else if (node.kids.size > 0) {
      sumUp(node);
    }
  }
}

function absorbOnlyKid(node) {
  const [kid] = node.kids.values();
  node.amount = kid.amount;
  node.description = kid.description;
  node.kids = kid.kids;
  node.name += `/${kid.name}`;
  node.shown += `/${kid.shown}`;
  node.merged = kid.merged > 0 ? kid.merged : node.merged;
}

function sumUp(node) {
  let sum = 0;
  for (const kid of node.kids.values()) {
    sum += kid.amount;
  }
  if (node.amount === undefined) {
    node.amount = sum;
    return;
  }
  // One of two files has a leaf here and the other a tree. A kid that is in neither makes them comparable.
  node.amount += sum;
  node.presence = Presence.both;
  const fake = newNode("(fake child)", "(fake child)", node.unit);
  fake.amount = node.amount - sum;
  fake.presence = Presence.added;
  node.kids.set(fake.name, fake);
}

/** What the allocator has handed out and no report names. */
function addUnclassified({ trees: { explicit }, flats, heapTotal }) {
  const allocated = flats["heap-allocated"];
  if (!explicit || !allocated || explicit.kids.has("heap-unclassified")) {
    return;
  }
  const node = newNode("heap-unclassified", "heap-unclassified", Unit.bytes);
  node.amount = allocated.amount - heapTotal;
  node.description = UNCLASSIFIED;
  explicit.kids.set(node.name, node);
  explicit.amount += node.amount;
}

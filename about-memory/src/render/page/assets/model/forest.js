// Reports become trees, as on about:memory: one node for each path, totals, chains of single kids made one.
"use strict";

const Presence = { both: 0, first: 1, second: 2, added: 3 };

// Names that every object has: Firefox's page loses a flat measurement that is called so.
const RESERVED = new Set(["__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__",
  "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"]);

const UNCLASSIFIED = "What the allocator has handed out beyond what the HEAP reports of this tree name; the allocator's " +
  "rounding of unreported blocks is in it.";

/**
 * All processes of a moment, with the reports that `accepts` wants of them. In each, `trees` and `flats` are objects: what
 * they list first is what Firefox lists first.
 */
function growForest(moment, accepts) {
  const processes = Object.create(null);
  const nodes = [];
  for (const report of moment.reports) {
    addReport(processes, nodes, report, moment, accepts);
  }
  markReporters(Object.values(processes), moment.reporters ?? []);
  addTotals(nodes);
  for (const process of Object.values(processes)) {
    addUnclassified(process);
  }
  return Object.values(processes);
}

function addReport(processes, nodes, report, moment, accepts) {
  const { path, amount } = report;
  const process = processOf(processes, report.process, moment.writer);
  if (path === "resident") {
    process.resident = amount;
  } else if (path === "resident-unique") {
    process.residentUnique = amount;
  }
  if (!accepts(path)) {
    return;
  }
  process.hasReports = true;
  const segments = report.segments ?? path.split("/");
  const isFlat = segments.length === 1;
  if (isFlat && RESERVED.has(segments[0])) {
    return;
  }
  let node = null;
  for (const segment of segments) {
    node = kidOf(node, node ? node.kids : isFlat ? process.flats : process.trees, {
      segment, isMeant: Boolean(report.segments), unit: report.units, nodes,
    });
  }
  if (!isFlat && segments[0] === "explicit" && report.kind === 1) {
    process.heapTotal += amount;
  }
  addAmount(node, report);
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
  };
  return processes[key];
}

/** The kid of a node, or the root, of this name; made if it is not there. `siblings` is a Map, or an object for roots. */
function kidOf(parent, siblings, { segment, isMeant, unit, nodes }) {
  // A segment on its own is as it is meant; the path writes a slash that is part of a name as a backslash.
  const isLiteral = isMeant && segment.includes("\\");
  const name = isMeant && !isLiteral ? segment.replaceAll("/", "\\") : segment;
  const key = isLiteral ? `\0${name}` : name;
  const known = parent ? siblings.get(key) : siblings[key];
  if (known) {
    return known;
  }
  const node = newNode(name, isLiteral ? name : name.replaceAll("\\", "/"), unit);
  node.isRoot = !parent;
  nodes.push(node);
  if (parent) {
    siblings.set(key, node);
  } else {
    siblings[key] = node;
  }
  return node;
}

function newNode(name, shown, unit) {
  return {
    name, shown, unit, isRoot: false, kids: new Map(), amount: undefined, merged: 0, presence: Presence.both, description: "",
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

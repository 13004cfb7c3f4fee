// A tree as it is shown: kids sorted, the tiny ones gathered, what is invalid marked and in sight; and pages of trees.
"use strict";

// The most tiny kids of a node with a line because the program's own reporters report there.
const MOST_TINY_REPORTERS = 16;

/** The lines of the tree that grows from `root`. Each line has its kids; `settings` has isVerbose and isDiff. */
function arrangeTree(root, process, settings) {
  const tree = { unit: root.unit, isFlat: false, invalid: [], root: new Line(root, null) };
  gatherKids(tree.root, settings);
  tree.total = tree.root.amount;
  const todo = [tree.root];
  while (todo.length > 0) {
    arrangeKids(todo.pop(), tree.total, settings, todo);
  }
  finishTree(tree, process, settings);
  return tree;
}

/** A single measurement, outside any tree. */
function flatTree(node, process, settings) {
  const tree = { unit: node.unit, isFlat: true, invalid: [], root: new Line(node, null), total: node.amount };
  finishTree(tree, process, settings);
  return tree;
}

/** A line of a tree: that of a node, or of several tiny ones. */
class Line {
  /** `above` is the line that it is below: null for a root, whose name is behind that of its process. */
  constructor(node, above) {
    this.node = node;
    this.above = above;
    this.process = "";
    this.name = node.name;
    this.shown = node.shown;
    this.amount = node.amount;
    this.kids = NO_LINES;
    this.merged = node.merged;
    this.presence = node.presence;
    this.description = node.description;
    this.hasReporter = node.hasReporter;
    this.showsKids = true;
    this.isOpen = true;
    this.isInvalid = false;
    this.holdsInvalid = false;
    this.isGathering = false;
    this.weight = 0;
  }

  /** The names of the line and of those above it, with slashes between. */
  get path() {
    const names = [];
    for (let line = /** @type {Line | null} */ (this); line; line = line.above) {
      names.push(line.shown);
    }
    return names.reverse().join("/");
  }

  /** The process and the path. */
  get id() {
    let root = /** @type {Line} */ (this);
    while (root.above) {
      root = root.above;
    }
    return `${root.process}:${this.path}`;
  }
}

/** The kids of a line that has none, as most have. Nothing is ever added. */
const NO_LINES = /** @type {Line[]} */ ([]);

/** Makes a line of every node; a difference is sorted by the greatest change at or below a line. */
function gatherKids(root, { isDiff }) {
  const lines = [root];
  for (let next = 0; next < lines.length; next++) {
    const above = lines[next];
    if (above.node.kids.size > 0) {
      above.kids = [];
      for (const kid of above.node.kids.values()) {
        const line = new Line(kid, above);
        above.kids.push(line);
        lines.push(line);
      }
    }
  }
  if (isDiff) {
    for (let index = lines.length - 1; index >= 0; index--) {
      lines[index].weight = weigh(lines[index].amount, lines[index].kids);
    }
  }
}

function weigh(amount, kids) {
  return kids.reduce((most, kid) => Math.max(most, kid.weight), Math.abs(amount));
}

/** Sorts the kids of one line, gathers the tiny ones, and adds what is still to be arranged to `todo`. */
function arrangeKids(parent, total, settings, todo) {
  const compare = (a, b) => compareAmounts(a, b, settings) || compareNames(a.name, b.name);
  let kids = sortStably(parent.kids, compare);
  for (const kid of kids) {
    if (kid.kids.length > 0) {
      todo.push(kid);
    }
  }
  const [shown, tiny] = divide(kids, total, settings);
  if (tiny.length > 0 && shown.length === 0) {
    // All are tiny: nothing to gather them beside.
    parent.showsKids = false;
  } else if (tiny.length > 1) {
    kids = sortStably([...shown, gathering(tiny, parent)], compare);
  }
  parent.kids = kids;
}

/** Sorted kids with a line of their own, and the others: all from the first tiny one on, but for the program's reporters. */
function divide(kids, total, settings) {
  const first = settings.isVerbose ? -1 : kids.findIndex(kid => isTiny(kid, total, settings));
  if (first === -1) {
    return [kids, []];
  }
  const [shown, tiny] = [kids.slice(0, first), []];
  let kept = settings.isDiff ? 0 : MOST_TINY_REPORTERS;
  for (const kid of kids.slice(first)) {
    const isKept = kept > 0 && kid.hasReporter;
    kept -= Number(isKept);
    (isKept ? shown : tiny).push(kid);
  }
  return [shown, tiny];
}

/** One line for the tiny kids of a line. */
function gathering(tiny, parent) {
  const name = `(${tiny.length} tiny)`;
  const line = new Line({
    name, shown: name, amount: tiny.reduce((sum, { amount }) => sum + amount, 0), merged: 0, presence: Presence.both,
    description: "", hasReporter: false,
  }, parent);
  line.kids = tiny;
  tiny.forEach(kid => (kid.above = line));
  line.showsKids = line.isOpen = false;
  line.isGathering = true;
  line.weight = weigh(line.amount, tiny);
  return line;
}

function compareAmounts(a, b, { isDiff }) {
  const [first, second] = isDiff ? [a.weight, b.weight] : [a.amount, b.amount];
  return second < first ? -1 : second > first ? 1 : 0;
}

function isTiny(line, total, { isDiff }) {
  return isDiff ? 100 * line.weight / Math.abs(total) < 1 : 100 * line.amount / total < 1;
}

/** Marks what is negative or greater than the root, and opens the way to it. */
function finishTree(tree, process, { isDiff, isVerbose }) {
  tree.root.process = process;
  const order = [];
  const todo = [tree.root];
  while (todo.length > 0) {
    const line = todo.pop();
    line.isInvalid = !isDiff && !(0 <= line.amount && line.amount <= tree.total);
    if (line.isInvalid) {
      tree.invalid.push(line.path);
    }
    order.push(line);
    for (let index = line.kids.length - 1; index >= 0; index--) {
      todo.push(line.kids[index]);
    }
  }
  for (let index = order.length - 1; index >= 0; index--) {
    const line = order[index];
    const below = line.kids.some(kid => kid.holdsInvalid);
    line.holdsInvalid = below || line.isInvalid;
    line.isOpen = line.showsKids;
    if (!isVerbose) {
      line.showsKids ||= below;
      line.isOpen ||= line.holdsInvalid;
    }
  }
}

/**
 * What is shown of a moment: the processes in their order, each with warnings, trees and flat measurements. `unlisted` are
 * invalid paths that nobody lists: Firefox's page keeps them for the next process that has a tree `explicit`.
 */
function buildPage(moment, settings) {
  const { pattern, isRegex } = settings;
  const arrived = forestOf(moment, pattern, isRegex);
  let total = 0;
  for (const process of arrived) {
    const share = process.isMain || !process.residentUnique ? process.resident : process.residentUnique;
    total += share || 0;
  }
  const processes = sortStably([...arrived], compareProcesses);
  let invalid = pattern === "" ? [] : unlistedOf(moment, settings);
  const pages = [];
  for (const process of processes.filter(process => process.hasReports)) {
    const page = processPage(process, moment, settings);
    invalid = invalid.concat(page.found);
    if (page.explicit) {
      page.invalid = invalid;
      invalid = [];
    }
    pages.push(page);
  }
  return { processes: pages, total: formatAmount(total, Unit.bytes, settings.bytes), unlisted: invalid };
}

const forests = new WeakMap();

/** The processes of a moment with the reports that match: of the filter that was used last they are kept. */
function forestOf(moment, pattern, isRegex) {
  const known = forests.get(moment);
  if (known?.pattern === pattern && known.isRegex === isRegex) {
    return known.processes;
  }
  const processes = growForest(moment, filterOf(pattern, isRegex));
  forests.set(moment, { pattern, isRegex, processes });
  return processes;
}

const unlisted = new WeakMap();

/** The invalid paths that the page of a moment leaves unlisted before it is filtered. */
function unlistedOf(moment, settings) {
  const known = unlisted.get(moment);
  if (known?.isVerbose === settings.isVerbose && known?.isDiff === settings.isDiff) {
    return known.paths;
  }
  const { isVerbose, isDiff } = settings;
  const paths = buildPage(moment, { ...settings, pattern: "" }).unlisted;
  unlisted.set(moment, { isVerbose, isDiff, paths });
  return paths;
}

function compareProcesses(a, b) {
  if (a.isMain) {
    return -1;
  }
  if (b.isMain) {
    return 1;
  }
  const [left, right] = [a.resident || -1, b.resident || -1];
  return right < left ? -1 : right > left ? 1 : a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function processPage(process, moment, settings) {
  const named = (a, b) => compareNames(a.root.name, b.root.name);
  const trees = Object.values(process.trees).map(root => arrangeTree(root, process.name, settings));
  const explicit = trees.find(tree => tree.root.name === "explicit");
  const others = sortStably(trees.filter(tree => tree !== explicit), named);
  const flats = sortStably(
    Object.values(process.flats).map(node => flatTree(node, process.name, settings)), named);
  const found = [...(explicit ? [explicit] : []), ...others, ...flats].flatMap(tree => tree.invalid);
  const isUnfiltered = settings.pattern === "";
  return {
    name: process.name, explicit, trees: others, flats, found, invalid: [],
    warnings: explicit && isUnfiltered ? warningsOf("heap-allocated" in process.flats, moment.hasMozMallocUsableSize) : [],
  };
}

function warningsOf(knowsAllocated, knowsUsableSize) {
  const reporter = "the 'heap-allocated' memory reporter";
  const usable = "the moz_malloc_usable_size() function";
  const where = "not work for this platform and/or configuration. This means that";
  const missing = (is, what) => `'heap-unclassified' is not shown and the 'explicit' tree shows ${what} memory than it should.`;
  if (!knowsAllocated && !knowsUsableSize) {
    return [`WARNING: ${reporter} and ${usable} do ${where} ${missing("", "much less")}`];
  }
  if (!knowsAllocated) {
    return [`WARNING: ${reporter} does ${where} ${missing("", "less")}`];
  }
  return knowsUsableSize ? [] : [`WARNING: ${usable} does ${where} much of the heap-allocated memory is not measured by ` +
    "individual memory reporters and so will fall under 'heap-unclassified'."];
}

/**
 * Returns a function that accepts the wanted paths, as they are in the file: with backslashes for the slashes of URLs.
 * Throws if the pattern is an invalid regular expression.
 */
function filterOf(pattern, isRegex) {
  if (pattern === "") {
    return () => true;
  }
  if (!isRegex) {
    return path => path.includes(pattern);
  }
  const regex = regexOf(pattern);
  if (regex === null) {
    throw new Error(`\`${pattern}\` is no regular expression.`);
  }
  return path => regex.test(path);
}

/** Returns the regular expression of a pattern, or null if it is invalid. */
function regexOf(pattern) {
  try {
    return new RegExp(pattern);
  } catch {
    return null;
  }
}

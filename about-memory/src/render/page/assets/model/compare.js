// Two heaps as one: rows with the bytes of the later one, and those of the earlier one as `before`. Two reports as their difference.
"use strict";

/** Returns a heap with the rows of both. Functions, texts and scopes are those of either. */
function mergeHeaps(before, after) {
  const heap = {
    ...after, calls: { functions: [], up: [], function: [] }, texts: [], scopes: [], accounts: [],
    untracked: { ...after.untracked, before: before.untracked.bytes },
    rows: { stack: [], type: [], scope: [], thread: [], reporter: [], state: [], blocks: [], bytes: [], before: [] },
  };
  const places = new Map();
  const [functions, texts, scopes, nodes] = [new Interner(heap.calls.functions), new Interner(heap.texts),
    new Interner(heap.scopes), new Map()];
  for (const [of, isAfter] of [[before, false], [after, true]]) {
    const ofFunctions = of.calls.functions.map(name => functions.number(name, name));
    const ofTexts = of.texts.map(text => texts.number(text, text));
    const ofScopes = of.scopes.map(names => {
      const own = names.map(name => ofTexts[name]);
      return scopes.number(own.join(), own);
    });
    const stacks = mergeCalls(heap.calls, of.calls, ofFunctions, nodes);
    const text = id => (id === null || id === undefined ? null : ofTexts[id]);
    for (let row = 0; row < of.rows.stack.length; row++) {
      const values = {
        stack: stacks[of.rows.stack[row]], type: text(of.rows.type[row]), scope: ofScopes[of.rows.scope[row]],
        thread: text(of.rows.thread?.[row]), reporter: text(of.rows.reporter?.[row]), state: of.rows.state?.[row] ?? "live",
      };
      const key = Object.values(values).join();
      let place = places.get(key);
      if (place === undefined) {
        place = heap.rows.stack.length;
        places.set(key, place);
        for (const [name, value] of Object.entries(values)) {
          heap.rows[name].push(value);
        }
        for (const name of ["blocks", "bytes", "before"]) {
          heap.rows[name].push(0);
        }
      }
      heap.rows[isAfter ? "bytes" : "before"][place] += of.rows.bytes[row];
      heap.rows.blocks[place] += isAfter ? of.rows.blocks[row] : 0;
    }
  }
  return heap;
}

/** Adds calls to others. Returns the new number of each. */
function mergeCalls(calls, added, ofFunctions, nodes) {
  const numbers = [];
  for (let node = 0; node < added.up.length; node++) {
    const parent = added.up[node] === 0 ? -1 : numbers[node - added.up[node]];
    const own = ofFunctions[added.function[node]];
    const key = `${parent},${own}`;
    let number = nodes.get(key);
    if (number === undefined) {
      number = calls.up.length;
      nodes.set(key, number);
      calls.up.push(parent < 0 ? 0 : number - parent);
      calls.function.push(own);
    }
    numbers.push(number);
  }
  return numbers;
}

/** Numbers for values, in the order of their first use. */
class Interner {
  constructor(values) {
    this.values = values;
    this.known = new Map();
  }

  number(key, value) {
    let number = this.known.get(key);
    if (number === undefined) {
      number = this.values.length;
      this.values.push(value);
      this.known.set(key, number);
    }
    return number;
  }
}

/** What differs from run to run in paths, as the command line takes it out. The order matters. */
const RUNS = [
  [/\(tid=(\d+)\)/, "(tid=NNN)"], [/#\d+ \(tid=NNN\)/, "#N (tid=NNN)"], [/zone\(0x[0-9A-Fa-f]+\)\//, "zone(0xNNN)/"],
  [/\/worker\((.+), 0x[0-9A-Fa-f]+\)\//, "/worker($1, 0xNNN)/"],
  [/^((?:explicit|event-counts)\/window-objects\/top\(.*, id=)\d+\)/, "$1NNN)"],
  [/moz-nullprincipal:\{........-....-....-....-............\}/g, "moz-nullprincipal:{NNNNNNNN-NNNN-NNNN-NNNN-NNNNNNNNNNNN}"],
  [/^(address-space.*?)\(segments=\d+\)/, "$1(segments=NNNN)"], [/source\(scripts=(\d+), /, "source(scripts=NNN, "],
];

/** The name of a process without its number. */
function processOfRuns(/** @type {unknown} */ name) {
  return String(name ?? "").replace(/pid([ =]|: )\d+/g, "pid$1NNN");
}

/** A path without what differs from run to run. */
function pathOfRuns(/** @type {string} */ path) {
  return RUNS.reduce((path, [pattern, text]) => path.replace(pattern, /** @type {string} */ (text)), processOfRuns(path));
}

/** The reports of the second file less those of the first. */
function differenceOf(first, second) {
  const sums = new Map();
  for (const [of, sign] of [[first, -1], [second, 1]]) {
    for (const report of of.reports) {
      const [process, path] = [processOfRuns(report.process), pathOfRuns(report.path)];
      const key = JSON.stringify([process, path]);
      const known = sums.get(key);
      if (known && (known.report.units !== report.units || known.report.kind !== report.kind)) {
        throw new Error(`${path}: its kind or unit is not the same in both files: they cannot be compared.`);
      }
      const side = sign === 1 ? 2 : 1;
      if (known) {
        known.amount += sign * report.amount;
        known.sides |= side;
      } else {
        sums.set(key, { report: { ...report, process, path }, amount: sign * report.amount, sides: side });
      }
    }
  }
  const reports = [...sums.values()].filter(({ amount, sides }) => amount !== 0 || sides !== 3).map(({ report, amount, sides }) =>
    ({ ...report, amount, ...(sides === 3 ? {} : { _presence: sides === 1 ? Presence.first : Presence.second }) }));
  return { ...second, reports };
}

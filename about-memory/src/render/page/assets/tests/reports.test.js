"use strict";

const assert = require("node:assert");
const test = require("node:test");
const { load, plain } = require("./load.js");

const { buildPage, itemsOfReports } = load("buildPage", "itemsOfReports");

const report = (process, path, amount) => ({ process, path, amount, kind: 1, units: 0, description: "" });
const SETTINGS = { pattern: "", isRegex: false, isVerbose: true, isDiff: false, bytes: "mb" };

/** The names and sizes of a page, level by level. */
function shown(page) {
  const of = items => items.map(({ name, size, kids }) => [name, size, of(kids)]);
  return plain(of(itemsOfReports(page, false)));
}

test("a page that is built again is as it was, also after a filter", () => {
  const moment = { reports: [report("b", "explicit/x/y", 3), report("a", "explicit/z", 1), report("b", "explicit/x/w", 4)] };
  const first = shown(buildPage(moment, SETTINGS));
  assert.deepStrictEqual(first, [["a", 0, [["explicit", 1, [["z", 1, []]]]]], ["b", 0, [["explicit", 7, [["x", 7, [["w", 4, []], ["y", 3, []]]]]]]]]);
  assert.deepStrictEqual(shown(buildPage(moment, SETTINGS)), first);
  const filtered = shown(buildPage(moment, { ...SETTINGS, pattern: "y" }));
  assert.strictEqual(JSON.stringify(filtered).includes("w"), false);
  assert.deepStrictEqual(shown(buildPage(moment, SETTINGS)), first);
});

"use strict";

const assert = require("node:assert");
const test = require("node:test");
const { load, plain } = require("./load.js");

const { readAddress, addressOf, changed, wayOf, differenceOf, tilesOf, firstSuggestion } =
  load("readAddress", "addressOf", "changed", "wayOf", "differenceOf", "tilesOf", "firstSuggestion");

test("what is chosen survives the address", () => {
  const chosen = { ...readAddress(""), view: "heap", by: "type,stack", find: "a&b=c#é", at: JSON.stringify(["x\n", "y"]) };
  assert.deepStrictEqual(plain(readAddress(addressOf(chosen))), plain(chosen));
  assert.strictEqual(addressOf(readAddress("")), "#");
  assert.strictEqual(readAddress("#view=treemap").as, "treemap");
  assert.strictEqual("evil" in readAddress("#evil=1&__proto__=2"), false);
});

test("another view begins afresh, the same one goes on", () => {
  const chosen = { ...readAddress(""), view: "heap", at: "[]", sort: "size", moment: "3" };
  assert.deepStrictEqual([changed(chosen, { view: "types" }).at, changed(chosen, { view: "types" }).moment], ["", "3"]);
  assert.strictEqual(changed(chosen, { by: "type" }).sort, "size");
  assert.strictEqual(changed(chosen, { view: "dark", find: "f" }).find, "f");
  assert.deepStrictEqual(plain(wayOf("no JSON")), []);
});

test("files that were opened are compared, two runs of a program too", () => {
  const report = (pid, path, amount) => ({ process: `p (pid ${pid})`, path, kind: 1, units: 0, amount });
  const { reports } = differenceOf({ reports: [report(1, "explicit/a", 5), report(1, "explicit/same", 2), report(1, "explicit/gone", 1)] },
    { reports: [report(2, "explicit/a", 9), report(2, "explicit/same", 2), report(2, "explicit/new", 4)] });
  const seen = reports.map(({ path, amount, _presence }) => [path, amount, _presence ?? 0]);
  assert.deepStrictEqual(plain(seen), [["explicit/a", 4, 0], ["explicit/gone", -1, 1], ["explicit/new", 4, 2]]);
});

test("files with other units are not compared", () => {
  const report = units => ({ reports: [{ process: "p", path: "a/b", kind: 2, units, amount: 1 }] });
  assert.throws(() => differenceOf(report(0), report(1)), /cannot be compared/);
});

test("tiles say what is not known, and why", () => {
  const moment = { figures: { "resident": 10, "heap-allocated": 8, "heap-unclassified": 4 }, sheets: [] };
  const shown = found => plain(tilesOf(moment, found, null).map(({ name, value, why }) => [name, value, value === null ? why : ""]));
  assert.deepStrictEqual(shown(null).slice(2), [["Unreported", 4, ""], ["Reported twice", null, "needs a dump: run with DMD=1"],
    ["Leaked", null, "needs a dump: run with DMD=1"]]);
  const dark = { classes: [{ class: "twice-reported", all: { bytes: 3 }, places: [{ bytes: 3, remedy: "leave it out" }] }], wrong: [] };
  assert.deepStrictEqual(shown({ dark })[4], ["Leaked", null, "needs DMD=--mode=scan"]);
  assert.deepStrictEqual(shown({ dark, leaked: 0 })[4], ["Leaked", 0, ""]);
  assert.strictEqual(firstSuggestion({ dark }).remedy, "leave it out");
  assert.strictEqual(firstSuggestion(null), null);
});

test("a dump without its report has the sums that it knows itself", () => {
  const moment = { figures: {}, sheets: ["heap"], hasReports: false };
  const shown = found => plain(tilesOf(moment, found, null).map(({ value, why }) => (value === null ? why : value)));
  const dark = classes => ({ heap: { bytes: 8 }, heapUnclassified: 4, wrong: [], classes: classes.map(name => ({ class: name, all: { bytes: 2 }, places: [] })) });
  assert.deepStrictEqual(shown({ mode: "dark-matter", dark: dark(["unreported"]) }), ["not reported", 8, 4, 0, "needs DMD=--mode=scan"]);
  // In a mode that asks no reporters, nothing is unreported or reported twice.
  assert.deepStrictEqual(shown({ mode: "live", dark: dark(["live"]) }),
    ["not reported", 8, "not known", "not known in mode live", "needs DMD=--mode=scan"]);
});

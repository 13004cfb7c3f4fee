"use strict";

const assert = require("node:assert");
const test = require("node:test");
const { load, plain } = require("./load.js");

const { itemsOfCensus, axesOf, compareItems, changeOf } = load("itemsOfCensus", "axesOf", "compareItems", "changeOf");

/** A census of three groups: two of one type, and one without a type. */
function census(bytes = [100, 60, 40]) {
  return {
    texts: ["Vec<u8>", "shop", "explicit/index", "explicit/index/words", "unreported", "once"], untracked: { bytes: 0, blocks: 0 },
    rows: { type: [0, 0, null], crate: [1, null, 1], reporter: [null, 2, 3], state: [4, 5, 5], blocks: [1, 2, 3], bytes },
  };
}

const shape = item => [item.name, item.size, item.blocks, ...item.kids.map(shape)];

test("blocks are counted by one axis within another, and every group adds up", () => {
  assert.deepStrictEqual(plain(itemsOfCensus(census(), ["type", "crate"]).map(shape)),
    [["Vec<u8>", 160, 3, ["shop", 100, 1], ["(no crate)", 60, 2]], ["[unknown]", 40, 3, ["shop", 40, 3]]]);
  const [first] = itemsOfCensus(census(), ["type"]);
  assert.strictEqual(first.unreported, 100);
  assert.strictEqual(first.whole, 200);
});

test("blocks of one key are counted alone; a reporter's are those below its path too", () => {
  const sum = only => itemsOfCensus(census(), ["type"], only).reduce((sum, { size }) => sum + size, 0);
  assert.strictEqual(sum("reporter:explicit/index"), 100);
  assert.strictEqual(sum("state:unreported"), 100);
  assert.strictEqual(sum("type:Vec<u8>"), 160);
  assert.strictEqual(sum("type:none"), 0);
});

test("blocks from before tracking began are in the sum, unless something else is wanted", () => {
  const late = { ...census(), untracked: { bytes: 500, blocks: 7 } };
  assert.deepStrictEqual(plain(itemsOfCensus(late, ["type"]).map(({ size }) => size)), [160, 40, 500]);
  assert.strictEqual(itemsOfCensus(late, ["type"])[0].whole, 700);
  assert.strictEqual(itemsOfCensus(late, ["type"], "state:unreported").length, 1);
});

test("axes without an answer are not offered", () => {
  assert.deepStrictEqual(plain(axesOf(census())), ["type", "crate", "reporter", "state"]);
});

test("two censuses are compared by their keys, also below", () => {
  const [before, after] = [census([100, 60, 40]), census([150, 60, 0])].map(of => itemsOfCensus(of, ["type", "crate"]));
  const both = compareItems(before, after).map(of => [of.name, changeOf(of), of.kids.map(kid => [kid.name, changeOf(kid)])]);
  assert.deepStrictEqual(plain(both), [["Vec<u8>", 50, [["shop", 50], ["(no crate)", 0]]], ["[unknown]", -40, [["shop", -40]]]]);
});

"use strict";

const assert = require("node:assert");
const test = require("node:test");
const { load, plain } = require("./load.js");

const { linksOf, linksOfPlace, ownerName } = load("linksOf", "linksOfPlace", "ownerName");

const found = {
  dark: { classes: [
    { class: "unreported", places: [{ remedy: "no reporter reaches static shop::CARTS", type: "Vec<Cart>", own: "shop::fill (src/main.rs:7)" }] },
    { class: "once-reported", places: [{ remedy: "none", type: "Index", own: "shop::index" }] },
  ] },
};
const everything = () => true;
const texts = (item, view, has = everything) => plain(linksOf(item, view, has, found).map(([text]) => text));

test("a report leads to its blocks, a function to its places, a type to its owners, an owner to what to do", () => {
  assert.deepStrictEqual(texts({ path: "explicit/index", name: "index" }, "trees"), ["Its blocks", "Its types"]);
  assert.deepStrictEqual(texts({ kind: "frame", name: "shop::fill" }, "heap"), ["Its places and what to do", "Only this function"]);
  assert.deepStrictEqual(texts({ kind: "type", name: "Vec<Cart>" }, "census"), ["Its stacks", "Who owns this type", "What it retains"]);
  assert.deepStrictEqual(texts({ kind: "static", name: "static shop::CARTS" }, "types"), ["Where such blocks are allocated", "What to do about it"]);
  assert.deepStrictEqual(texts({ kind: "static", name: "static shop::INDEX" }, "types"), ["Where such blocks are allocated"]);
});

test("a place leads to its function's stacks", () => {
  const [[, places], [, stacks]] = linksOf({ kind: "site", name: "shop::fill (src/main.rs:7)", key: "shop::fill (src/main.rs:7)" }, "census", everything, found);
  assert.deepStrictEqual(plain([places, stacks]), [{ view: "dark", find: "shop::fill" }, { view: "heap", by: "", only: "", within: "shop::fill" }]);
});

test("nothing leads to a view that has no data", () => {
  assert.deepStrictEqual(texts({ path: "explicit/index", name: "index" }, "trees", view => view === "trees"), []);
  assert.deepStrictEqual(texts({ path: "explicit/heap-unclassified", name: "heap-unclassified" }, "trees", view => view !== "census"),
    ["Unreported places and what to do", "Its blocks"]);
});

test("an owner is found by its name without what it is", () => {
  for (const [name, expected] of [
    ["static shop::CARTS", "shop::CARTS"], ["items: Vec<Item>", "Vec<Item>"], ["HashMap<u32, shop::Product>", "HashMap<u32, shop::Product>"],
  ]) {
    assert.strictEqual(ownerName(name), expected);
  }
});

test("an unreported place leads to its blocks, and to the static that its suggestion names", () => {
  const [place] = found.dark.classes[0].places;
  const links = plain(linksOfPlace(place, everything));
  assert.deepStrictEqual(links.map(([text]) => text), ["Its blocks", "Flame graph", "Its owner"]);
  assert.deepStrictEqual(links[2][1], { view: "types", find: "shop::CARTS" });
  assert.deepStrictEqual(plain(linksOfPlace({ type: "Vec<Cart>" }, everything)), [["Its owner", { view: "types", find: "Vec<Cart>" }]]);
  assert.deepStrictEqual(plain(linksOfPlace(place, view => view === "heap").length), 2);
});

"use strict";

const assert = require("node:assert");
const test = require("node:test");
const { load, plain } = require("./load.js");

const { breakDown, mergeHeaps, itemsOfHeap, compareItems, changeOf, findItems, sumOfFound, sortItems, followWay, layOutBoxes, framesOf } =
  load("breakDown", "mergeHeaps", "itemsOfHeap", "compareItems", "changeOf", "findItems", "sumOfFound", "sortItems", "followWay",
    "layOutBoxes", "framesOf");

/** A heap of main, which calls load and keep: three rows. */
function heap(amounts = [100, 60, 40]) {
  return {
    program: "shop", amount: "live", isEstimate: false, accounts: [], untracked: { bytes: 0, blocks: 0 },
    calls: { functions: ["main", "load", "keep"], up: [0, 1, 2], function: [0, 1, 2] }, scopes: [[]], texts: ["[u8]", "explicit/index"],
    rows: {
      stack: [1, 2, 0], type: [0, null, 0], scope: [0, 0, 0], thread: [null, null, null], reporter: [null, 1, 1],
      state: ["unreported", "once-reported", "twice-reported"], blocks: [1, 2, 3], bytes: amounts,
    },
  };
}

const wishes = { by: ["stack", "type"], cut: 0 };
const shape = node => [node.name, node.bytes, ...node.kids.map(shape)];

test("blocks are broken down by stack and type", () => {
  const root = breakDown(heap(), wishes);
  assert.deepStrictEqual(plain(shape(root)),
    ["", 200, ["main", 200, ["load", 100, ["[u8]", 100]], ["keep", 60, ["[unknown]", 60]], ["", 40, ["[u8]", 40]]]]);
  assert.strictEqual(root.kids[0].unreported, 100);
  assert.strictEqual(root.kids[0].twice, 40);
});

test("the call tree leads to what going through all rows leads to", () => {
  // A fixed sequence, so that a failure comes again.
  let seed = 7;
  const random = most => (seed = (seed * 48271) % 2147483647) % most;
  for (let round = 0; round < 60; round++) {
    const size = 1 + random(40);
    const up = Array.from({ length: size }, (_, node) => (node === 0 ? 0 : random(node + 1)));
    // Below one caller, a function has one node.
    const made = { ...heap(), calls: { functions: up.map((_, node) => `f${node}`), up, function: up.map((_, node) => node) } };
    const rows = Array.from({ length: random(60) });
    made.rows = {
      stack: rows.map(() => random(size)), type: rows.map(() => [null, 0, 1][random(3)]), scope: rows.map(() => 0),
      thread: rows.map(() => null), reporter: rows.map(() => null), state: rows.map(() => ["unreported", "twice-reported"][random(2)]),
      blocks: rows.map(() => 1 + random(3)), bytes: rows.map(() => random(1000)),
      ...(round % 2 === 0 ? { before: rows.map(() => random(1000)) } : {}),
    };
    for (const cut of [0, 3]) {
      const strip = node => [node.kind, node.name, node.bytes, node.blocks, node.before, node.unreported, node.twice, node.kids.map(strip)];
      const quick = strip(breakDown(made, { ...wishes, cut }));
      // All functions have a name that begins so, so nothing is left out, but every row is gone through.
      const slow = strip(breakDown(made, { ...wishes, cut, within: "f" }));
      assert.deepStrictEqual(plain(quick), plain(slow));
    }
  }
});

test("stacks can begin at the innermost function", () => {
  const root = breakDown(heap(), { ...wishes, by: ["stack"], isInverted: true });
  assert.deepStrictEqual(plain(root.kids.map(shape)), [["load", 100, ["main", 100]], ["keep", 60, ["main", 60]], ["main", 40]]);
});

test("blocks are chosen by state and by reporter", () => {
  const sum = only => breakDown(heap(), { ...wishes, only }).bytes;
  assert.strictEqual(sum("state:unreported"), 100);
  assert.strictEqual(sum("reporter:explicit"), 100);
  assert.strictEqual(sum("reporter:explicit/ind"), 0, "a path is no prefix of letters");
});

test("two heaps are compared, whatever the numbers of their functions", () => {
  const later = heap([150, 60, 0]);
  later.calls = { functions: ["keep", "main", "load"], up: [0, 1, 2], function: [1, 2, 0] };
  const merged = mergeHeaps(heap(), later);
  const root = breakDown(merged, { ...wishes, by: ["stack"] });
  const changes = Object.fromEntries(root.kids[0].kids.map(({ name, bytes, before }) => [name, bytes - before]));
  assert.deepStrictEqual(changes, { load: 50, keep: 0, "": -40 });
  assert.strictEqual(root.bytes - root.before, 10);
});

test("items are compared by their names, with those that are gone", () => {
  const item = (id, size, kids = []) => ({ id, name: id, size, kids });
  const both = compareItems([item("a", 5, [item("b", 5)]), item("c", 1)], [item("a", 7, [item("d", 7)])]);
  const seen = both.map(of => [of.id, changeOf(of), of.kids.map(kid => [kid.id, changeOf(kid)])]);
  assert.deepStrictEqual(plain(seen), [["a", 2, [["d", 7], ["b", -5]]], ["c", -1, []]]);
});

test("items are found, summed, sorted and entered", () => {
  const items = itemsOfHeap(breakDown(heap(), wishes), false);
  assert.deepStrictEqual(plain(sumOfFound(items, "U8")), { sum: 140, count: 2 });
  assert.deepStrictEqual(plain(findItems(items, "keep")[0].kids.map(({ name }) => name)), ["keep"]);
  assert.deepStrictEqual(plain(sortItems(items, "-size")[0].kids.map(({ name }) => name)), ["itself", "keep", "load"]);
  const way = [items[0].id, items[0].kids[1].id, "gone"];
  assert.deepStrictEqual(plain(followWay(items, way).map(({ name }) => name)), ["main", "keep"]);
});

test("boxes are as wide as they are big, and lie within each other", () => {
  const boxes = layOutBoxes(itemsOfHeap(breakDown(heap(), wishes), false), 0);
  const byName = Object.fromEntries(boxes.filter(({ depth }) => depth === 1).map(({ item, x, width }) => [item.name, [x, width]]));
  assert.deepStrictEqual(byName, { load: [0, 0.5], keep: [0.5, 0.3], itself: [0.8, 0.2] });
  for (const { x, width, parent } of boxes.filter(({ parent }) => parent >= 0)) {
    const around = boxes[parent];
    assert.ok(x >= around.x - 1e-12 && x + width <= around.x + around.width + 1e-12);
  }
  const greedy = { id: "a", name: "a", size: 10, kids: [{ id: "b", name: "b", size: 30, kids: [] }] };
  assert.strictEqual(layOutBoxes([greedy], 0)[1].width, 1, "kids never stick out");
});

test("the frames of a stack come innermost first", () => {
  assert.deepStrictEqual(plain(framesOf(heap(), 1)), [1, 0]);
});

test("the ten colours go to the biggest crates, each to one", () => {
  const { ranksOf, newItem } = load("ranksOf", "newItem");
  const item = (name, size, crate) => newItem(name, name, { size, crate });
  const crates = Array.from({ length: 12 }, (_, number) => item(`f${number}`, 100 - number, `crate${number}`));
  const ranks = ranksOf([...crates, item("g", 500, "crate11"), item("[u8]", 900, "")]);
  assert.deepEqual(plain([...ranks.keys()].slice(0, 3)), ["crate11", "crate0", "crate1"]);
  assert.deepEqual(plain([...ranks.values()].slice(0, 12)), Array.from({ length: 12 }, (_, rank) => rank));
});

test("cycles and smaller nodes are counted in words, and statics named once", () => {
  const { itemsOfRetained } = load("itemsOfRetained");
  const node = (is, name, kids = []) => ({ is, name, retained: 10, own: 0, blocks: 0, kids });
  const tree = { heap: { retained: 30, kids: [node("static", "shop::CARTS"), node("cycles", 1), node("other", 2)] } };
  assert.deepEqual(plain(itemsOfRetained(tree).map(({ name, kind, blocks = "none" }) => [name, kind, blocks])),
    [["shop::CARTS", "static", "none"], ["1 cycle", "cycles", "none"], ["2 smaller ones", "other", "none"]]);
});

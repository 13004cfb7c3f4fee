"use strict";

const assert = require("node:assert");
const test = require("node:test");
const { load, plain } = require("./load.js");

const { heapOfRange, intervalAt, areasOf, ticks, timeTicks, stack, nearest } =
  load("heapOfRange", "intervalAt", "areasOf", "ticks", "timeTicks", "stack", "nearest");

/** Two rows over three intervals: the first makes 100 and frees 60 of it, the second makes 30 at last. */
const recording = {
  summary: { program: "/bin/shop", pid: 7, sampleBytes: null }, ends: [10, 20, 30], scopes: [[]], texts: [],
  calls: { functions: ["main", "load"], up: [0, 1], function: [0, 1] },
  rows: { stack: [0, 1], type: [null, null], scope: [0, 0], thread: [null, null] },
  changes: { interval: [0, 1, 2], row: [0, 0, 1], made: [100, 0, 30], freed: [0, 60, 0], madeBlocks: [1, 0, 3], freedBlocks: [0, 1, 0] },
  atPeak: { row: [0], bytes: [100], blocks: [1] },
};

const sum = list => list.reduce((sum, amount) => sum + amount, 0);

test("a range shows what is live, made, freed or grown in it", () => {
  const bytes = (from, to, what) => sum(heapOfRange(recording, { from, to, what }).rows.bytes);
  assert.deepStrictEqual([0, 1, 2].map(to => bytes(-1, to, "")), [100, 40, 70]);
  assert.strictEqual(bytes(0, 2, "made"), 30);
  assert.strictEqual(bytes(-1, 2, "made"), 130);
  assert.strictEqual(bytes(0, 2, "freed"), 60);
  assert.strictEqual(bytes(-1, 2, "peak"), 100);
  const grown = heapOfRange(recording, { from: 0, to: 2, what: "growth" }).rows;
  assert.strictEqual(sum(grown.bytes) - sum(grown.before), -30);
});

test("sampled blocks are whole once they are added up", () => {
  const changes = { ...recording.changes, madeBlocks: [2.8, 0, 1.4], freedBlocks: [0, 1.4, 0] };
  const blocks = to => plain(heapOfRange({ ...recording, changes }, { from: -1, to, what: "" }).rows.blocks);
  assert.deepStrictEqual([0, 1, 2].map(blocks), [[3], [1], [1, 1]]);
});

test("a time belongs to the interval that ends at it or after it", () => {
  assert.deepStrictEqual([0, 10, 11, 30, 99].map(time => intervalAt(recording, time)), [0, 0, 1, 2, 2]);
});

test("areas are the biggest groups and the rest, and add up", () => {
  const areas = areasOf(recording, 1, row => `row ${row}`);
  assert.deepStrictEqual(plain(areas.map(({ name, amounts }) => [name, amounts])), [["row 0", [100, 40, 40]], ["1 others", [0, 0, 30]]]);
  assert.deepStrictEqual(plain(stack(areas)[1].tops), [100, 40, 70]);
});

test("ticks are round and cover everything", () => {
  for (const greatest of [1, 999, 1024, 20_000, 5e6, 3e9, 7e12]) {
    const made = ticks(greatest, 4, true);
    assert.ok(made.length <= 6 && made[0] === 0 && made[made.length - 1] >= greatest, `${greatest}: ${made}`);
    const unit = 1024 ** Math.floor(Math.log(made[1]) / Math.log(1024));
    assert.ok(Number.isInteger(made[1] / unit), `${made[1]} is not round`);
  }
  assert.deepStrictEqual(plain(timeTicks(0, 1_562_000, 8, 1e6)), [0, 200_000, 400_000, 600_000, 800_000, 1_000_000, 1_200_000, 1_400_000]);
  assert.deepStrictEqual(plain(timeTicks(5, 5, 8, 1000)), [5]);
  assert.strictEqual(nearest([1, 5, 9], 6), 1);
});

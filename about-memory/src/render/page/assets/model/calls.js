// The call tree of a heap with sums at every call: of the blocks that were allocated there or below.
"use strict";

/**
 * @typedef {object} CallSums
 * @property {Float64Array} bytes
 * @property {Float64Array} blocks
 * @property {Float64Array} before
 * @property {Float64Array} unreported
 * @property {Float64Array} twice
 * @property {number[]} roots
 * @property {(call: number) => number[]} kids the calls right below that have rows
 * @property {(call: number) => number[]} own the rows of the call itself
 */

/** @returns {CallSums} */
function callSums({ rows, calls: { up } }) {
  const count = up.length;
  const [bytes, blocks, before, unreported, twice] = Array.from({ length: 5 }, () => new Float64Array(count));
  const below = new Uint32Array(count);
  // Lists that are linked: the first row or kid of a call, and the next one of each.
  const [firstRow, nextRow] = [new Int32Array(count).fill(-1), new Int32Array(rows.stack.length)];
  for (let row = rows.stack.length - 1; row >= 0; row--) {
    const call = rows.stack[row];
    const amount = rows.bytes[row];
    const state = rows.state?.[row];
    bytes[call] += amount;
    blocks[call] += rows.blocks[row];
    before[call] += rows.before?.[row] ?? 0;
    if (state === "unreported") {
      unreported[call] += amount;
    } else if (state === "twice-reported") {
      twice[call] += amount;
    }
    below[call] += 1;
    nextRow[row] = firstRow[call];
    firstRow[call] = row;
  }
  const [firstKid, nextKid] = [new Int32Array(count).fill(-1), new Int32Array(count)];
  const roots = [];
  // A call comes before those below it, so the way back meets every call before its caller.
  for (let call = count - 1; call >= 0; call--) {
    if (below[call] === 0) {
      continue;
    }
    if (up[call] === 0) {
      roots.unshift(call);
      continue;
    }
    const caller = call - up[call];
    bytes[caller] += bytes[call];
    blocks[caller] += blocks[call];
    before[caller] += before[call];
    unreported[caller] += unreported[call];
    twice[caller] += twice[call];
    below[caller] += below[call];
    nextKid[call] = firstKid[caller];
    firstKid[caller] = call;
  }
  const list = (first, next) => call => {
    const found = [];
    for (let at = first[call]; at >= 0; at = next[at]) {
      found.push(at);
    }
    return found;
  };
  return { bytes, blocks, before, unreported, twice, roots, kids: list(firstKid, nextKid), own: list(firstRow, nextRow) };
}

// A recording: its heap at the end of any interval, and what happened between two of them.
"use strict";

/** What can be shown of a range of a recording, with what people read. */
const RANGES = {
  "": "live at the end of the range", growth: "growth over the range", made: "allocated in the range",
  freed: "freed in the range", peak: "live at the peak of the recording",
};

/** The number of the interval that ends at this time or after it, and the last one of a later time. */
function intervalAt(recording, time) {
  const at = recording.ends.findIndex(end => end >= time);
  return at < 0 ? recording.ends.length - 1 : at;
}

/**
 * Returns the heap of a range in the form of a dump's. `from` and `to` are intervals; `from` is -1 for the beginning.
 */
function heapOfRange(recording, { from, to, what }) {
  const { changes, atPeak } = recording;
  const count = recording.rows.stack.length;
  const [bytes, blocks, before] = [0, 1, 2].map(() => new Array(count).fill(0));
  if (what === "peak") {
    atPeak.row.forEach((row, index) => {
      bytes[row] = atPeak.bytes[index];
      blocks[row] = atPeak.blocks[index];
    });
  } else {
    for (let index = 0; index < changes.row.length; index++) {
      const [row, interval] = [changes.row[index], changes.interval[index]];
      const isIn = interval > from && interval <= to;
      if (what === "made" ? isIn : what !== "freed" && interval <= to) {
        bytes[row] += changes.made[index];
        blocks[row] += changes.madeBlocks[index];
      }
      if (what === "freed" && isIn) {
        bytes[row] += changes.freed[index];
        blocks[row] += changes.freedBlocks[index];
      }
      if ((what === "" || what === "growth") && interval <= to) {
        bytes[row] -= changes.freed[index];
        blocks[row] -= changes.freedBlocks[index];
      }
      if (what === "growth" && interval <= from) {
        before[row] += changes.made[index] - changes.freed[index];
      }
    }
  }
  const kept = [...bytes.keys()].filter(row => bytes[row] !== 0 || before[row] !== 0);
  const pick = column => kept.map(row => column[row]);
  // Sampled blocks are fractions until they are added up. `|| 0` makes a positive zero of -0.
  const wholeBlocks = blocks.map(count => Math.round(count) || 0);
  const { rows, calls, scopes, texts, summary } = recording;
  return {
    program: (summary.program ?? "").split("/").pop(), pid: summary.pid, mode: "recording", calls, scopes, texts, accounts: [],
    amount: what === "made" ? "allocated" : what === "freed" ? "freed" : "live", isEstimate: summary.sampleBytes !== null,
    untracked: { bytes: 0, blocks: 0 },
    rows: {
      stack: pick(rows.stack), type: pick(rows.type), scope: pick(rows.scope), thread: pick(rows.thread), bytes: pick(bytes),
      blocks: pick(wholeBlocks), ...(what === "growth" ? { before: pick(before) } : {}),
    },
  };
}

/**
 * The live bytes of the biggest groups at the end of each interval, for stacked areas: `names`, and for each the `amounts`. The
 * last group is of all others.
 */
function areasOf(recording, most, nameOf) {
  const { changes, rows, ends } = recording;
  const groups = new Map();
  const names = rows.stack.map((_, row) => nameOf(row));
  for (let index = 0; index < changes.row.length; index++) {
    const name = names[changes.row[index]];
    let group = groups.get(name);
    if (!group) {
      group = new Array(ends.length).fill(0);
      groups.set(name, group);
    }
    group[changes.interval[index]] += changes.made[index] - changes.freed[index];
  }
  const all = [...groups].map(([name, steps]) => {
    let sum = 0;
    const amounts = steps.map(step => (sum += step));
    return { name, amounts, greatest: Math.max(...amounts) };
  }).sort((a, b) => b.greatest - a.greatest);
  const rest = all.slice(most);
  const others = ends.map((_, at) => rest.reduce((sum, { amounts }) => sum + amounts[at], 0));
  return [...all.slice(0, most), ...(rest.length > 0 ? [{ name: `${rest.length} others`, amounts: others, greatest: 0 }] : [])];
}

/** Round numbers from 0 to at least `greatest`, about `count` of them; of bytes those that are round in powers of 1024. */
function ticks(greatest, count, isBytes) {
  const least = Math.max(greatest, 1) / count;
  const unit = isBytes ? 1024 ** Math.floor(Math.log(Math.max(least, 1)) / Math.log(1024)) : 10 ** Math.floor(Math.log10(least));
  const factors = isBytes ? [1, 2, 4, 5, 10, 20, 50, 100, 200, 256, 512, 1024] : [1, 2, 5, 10];
  const step = (factors.find(factor => factor * unit >= least) ?? 1024) * unit;
  const made = [0];
  while (made[made.length - 1] < greatest) {
    made.push(made.length * step);
  }
  return made;
}

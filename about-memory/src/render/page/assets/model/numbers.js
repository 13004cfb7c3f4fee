// Numbers as about:memory prints them, and the order in which it sorts names. Both are the browser's own.
"use strict";

const Unit = { bytes: 0, count: 1, countCumulative: 2, percentage: 3 };

const fixed = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const plain = new Intl.NumberFormat("en-US");
const hundredths = new Intl.NumberFormat("en-US", {
  style: "percent", minimumFractionDigits: 2, maximumFractionDigits: 2,
});
const shares = new Intl.NumberFormat("en-US", {
  style: "percent", minimumIntegerDigits: 2, minimumFractionDigits: 2, maximumFractionDigits: 2,
});
const collator = new Intl.Collator("en-US");

const MB = 1024 * 1024;

/** An amount with its unit; `bytes` is "mb", "bytes" or "auto". */
function formatAmount(amount, unit, bytes) {
  if (unit === Unit.percentage) {
    return hundredths.format(amount / 10000);
  }
  if (unit !== Unit.bytes) {
    return plain.format(amount);
  }
  if (bytes === "auto") {
    return formatFitting(amount);
  }
  if (bytes === "kib") {
    return sizeText(amount);
  }
  return bytes === "mb" ? `${fixed.format(amount / MB)} MB` : `${plain.format(amount)} B`;
}

function formatFitting(amount) {
  const size = Math.abs(amount);
  const [least, name] = size >= 1024 * MB ? [1024 * MB, "GB"] : size >= MB ? [MB, "MB"] : [1024, "KB"];
  return size >= 1024 ? `${fixed.format(amount / Number(least))} ${name}` : `${plain.format(amount)} B`;
}

/** Bytes in the power of 1024 that fits: everywhere but in what must equal Firefox's text. */
function sizeText(amount) {
  const size = Math.abs(amount);
  const [least, name] = size >= 1024 * MB ? [1024 * MB, "GiB"] : size >= MB ? [MB, "MiB"] : [1024, "KiB"];
  return size >= 1024 ? `${fixed.format(amount / Number(least))} ${name}` : `${plain.format(Math.round(amount))} B`;
}

/** A node's share of its tree. */
function formatShare(part, whole) {
  const share = whole === 0 ? 1 : part / whole;
  return share >= 0.99995 && share <= 1 ? "100.0%" : shares.format(share);
}

function compareNames(a, b) {
  return collator.compare(a, b);
}

// V8's sort asks its questions in another order than Firefox's. Where a comparison contradicts itself (amounts that are no
// numbers, two main processes) the questions decide, so both viewers of this project use one plain merge sort.
function sortStably(items, compare) {
  const run = items.length <= 8 ? 8 : 4;
  for (let start = 0; start < items.length; start += run) {
    insertionSort(items, start, Math.min(start + run, items.length), compare);
  }
  let merged = new Array(items.length);
  for (let width = run; width < items.length; width *= 2) {
    for (let start = 0; start < items.length; start += 2 * width) {
      merge(items, merged, [start, Math.min(start + width, items.length),
        Math.min(start + 2 * width, items.length)], compare);
    }
    [items, merged] = [merged, items];
  }
  return items;
}

function insertionSort(items, start, end, compare) {
  for (let next = start + 1; next < end; next++) {
    const item = items[next];
    let place = next;
    for (; place > start && compare(items[place - 1], item) > 0; place--) {
      items[place] = items[place - 1];
    }
    items[place] = item;
  }
}

function merge(from, to, [start, middle, end], compare) {
  let [left, right] = [start, middle];
  const isInOrder = middle === end || compare(from[middle - 1], from[middle]) <= 0;
  for (let place = start; place < end; place++) {
    const takeLeft = left < middle && (isInOrder || right === end || compare(from[left], from[right]) <= 0);
    to[place] = takeLeft ? from[left++] : from[right++];
  }
}

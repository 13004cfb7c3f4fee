// The census of a dump: its blocks counted by any of its axes, one within the other, as `about-memory heap census --by` does.
"use strict";

/** The axes, in the words of the command line, with what people read, and what stands for blocks without an answer. */
const AXES = {
  "type": ["type", "[unknown]"], "crate": ["crate", "(no crate)"], "site": ["place", "(no stack)"], "file": ["file", "(no file)"],
  "reporter": ["reporter", "(no reporter)"], "field": ["field", "(no field)"], "state": ["reported or not", ""],
  "scope": ["scope", MARKS.noScope], "thread": ["thread", "(unknown thread)"], "size-class": ["size", ""],
  "age": ["age", "(unknown age)"],
};

/** What the keys of the axis `state` are called on the page. */
const REPORTED = { unreported: STATES.unreported, once: STATES["once-reported"], twice: STATES["twice-reported"], other: "live" };

/** The axes on which a census has answers. */
function axesOf(/** @type {any} */ census) {
  return Object.keys(AXES).filter(axis => axis in census.rows);
}

/** What the key of a block on an axis is called. */
function keyText(/** @type {string} */ axis, /** @type {string | undefined} */ key) {
  if (key === undefined) {
    return AXES[axis][1];
  }
  return axis === "state" ? REPORTED[key] ?? key : key;
}

/**
 * The items of a census: a group for each key on the first axis, and in it one for each on the next.
 * @param {any} census
 * @param {string[]} by
 * @param {string} only `AXIS:KEY`, to count those blocks alone
 * @returns {Item[]}
 */
function itemsOfCensus(census, by, only = "") {
  const { rows, texts, untracked } = census;
  const [onlyAxis, onlyKey] = splitOnce(only, ":");
  const states = rows.state?.map(id => texts[id]) ?? [];
  const isWanted = row => {
    const key = texts[rows[onlyAxis]?.[row]] ?? "";
    return only === "" || (onlyAxis === "reporter" ? isBelow(key, onlyKey) : key === onlyKey);
  };
  const all = rows.bytes.map((_, row) => row).filter(isWanted);
  const sum = (of, column) => of.reduce((sum, row) => sum + column[row], 0);
  const whole = sum(rows.bytes.map((_, row) => row), rows.bytes) + untracked.bytes;
  const groups = (of, axes, above) => {
    const [axis, ...rest] = axes;
    const byKey = new Map();
    for (const row of of) {
      const key = rows[axis]?.[row] ?? null;
      const known = byKey.get(key);
      if (known) {
        known.push(row);
      } else {
        byKey.set(key, [row]);
      }
    }
    const made = [...byKey].map(([key, within]) => {
      const name = keyText(axis, texts[key]);
      const id = `${above}${axis}:${key === null ? "" : texts[key]}\n`;
      const is = state => sum(within.filter(row => states[row] === state), rows.bytes);
      const item = newItem(id, name, {
        kind: AXIS_KINDS[axis] ?? "", size: sum(within, rows.bytes), blocks: sum(within, rows.blocks), whole, unreported: is("unreported"),
        twice: is("twice"), crate: ["type", "site"].includes(axis) ? crateOf(name) : axis === "crate" ? name : "", isOpen: false,
        key: key === null ? undefined : texts[key], axis,
      });
      if (rest.length > 0) {
        makeLate(item, "kids", () => groups(within, rest, id));
      }
      return item;
    });
    return made.sort((a, b) => b.size - a.size || compareNames(a.name, b.name));
  };
  const items = groups(all, by, "");
  if (untracked.blocks > 0 && only === "") {
    items.push(newItem("untracked\n", UNTRACKED, { kind: "untracked", size: untracked.bytes, blocks: untracked.blocks, whole }));
  }
  return items;
}

/** The kinds of the items of an axis, which decide their badges and links. */
const AXIS_KINDS = { type: "type", reporter: "reporter", scope: "scope", thread: "thread", site: "site", file: "file", crate: "crate" };

/** A text before and behind the first separator. */
function splitOnce(/** @type {string} */ text, /** @type {string} */ separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

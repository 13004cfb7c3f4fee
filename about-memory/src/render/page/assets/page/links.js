// Where more is to be seen about an item: from a report to its blocks, to their stacks, to their owner, and to what to do about it.
"use strict";

/** @typedef {[string, Record<string, string>]} Link its text, and what it chooses */

/**
 * The links of an item of a view, as far as there are data for them.
 * @param {any} item
 * @param {string} view
 * @param {(view: string) => boolean} has whether there is this view
 * @param {any} found the moment's findings
 * @returns {Link[]}
 */
function linksOf(item, view, has, found) {
  const links = [...linksOfReport(item), ...linksOfBlocks(item, view), ...linksOfOwner(item, view, found)];
  return links.filter(([, change]) => has(change.view ?? view));
}

/**
 * From a report to the blocks that it counts, or that none counts.
 * @returns {Link[]}
 */
function linksOfReport({ path, kind, name }) {
  const reporter = path ?? (kind === "reporter" ? name : "");
  if (/^explicit\/.*heap-unclassified/.test(reporter)) {
    return [["Unreported places and what to do", { view: "dark" }], ["Its blocks", { view: "heap", only: "state:unreported" }],
      ["Its types", { view: "census", count: "", then: "", only: "state:unreported" }]];
  }
  return reporter.startsWith("explicit/") ? [
    ["Its blocks", { view: "heap", by: "type,stack", within: "", only: `reporter:${reporter}` }],
    ["Its types", { view: "census", count: "", then: "", only: `reporter:${reporter}` }],
  ] : [];
}

/**
 * From a function or a type of blocks to its places, its blocks and its owners.
 * @returns {Link[]}
 */
function linksOfBlocks({ kind, name, key }, view) {
  if (kind === "frame" && view === "heap") {
    return [["Its places and what to do", { view: "dark", find: name }], ["Only this function", { within: name, at: "" }]];
  }
  if (kind === "site" && key) {
    const within = functionOf(key);
    return [["Its places and what to do", { view: "dark", find: within }], ["Its stacks", { view: "heap", by: "", only: "", within }]];
  }
  if (kind === "type" && ["heap", "census"].includes(view)) {
    /** @type {Link[]} */
    const stacks = [["Its stacks", { view: "heap", by: "type,stack", within: "", only: "", find: name }]];
    return [...(view === "heap" ? [] : stacks),
      ["Who owns this type", { view: "types", find: name }], ["What it retains", { view: "retained", find: name }]];
  }
  return [];
}

/**
 * From an owner to where its blocks are allocated, and to the suggestion that names it.
 * @returns {Link[]}
 */
function linksOfOwner({ name }, view, found) {
  if (!["types", "retained"].includes(view)) {
    return [];
  }
  const words = ownerName(name);
  /** @type {Link[]} */
  const advice = isSuggested(found, words) ? [["What to do about it", { view: "dark", find: words }]] : [];
  return [["Where such blocks are allocated", { view: "heap", by: "type,stack", find: words }], ...advice];
}

/** The name of a row of the owners or of the retained sizes, without what it is: `static shop::CARTS`, `items: Vec<Item>`. */
function ownerName(/** @type {string} */ name) {
  return name.replace(/^static /, "").replace(/^[^<>(]*: /, "");
}

/** Returns whether a suggestion, or the place of one, has these words. */
function isSuggested(found, words) {
  const places = (found?.dark?.classes ?? []).filter(({ class: name }) => name !== "once-reported").flatMap(({ places }) => places);
  return words !== "" && places.some(({ remedy, type, own }) => remedy && [remedy, type, own].some(text => text?.includes(words)));
}

/**
 * From an unreported place to its blocks, and to the owner that its suggestion names.
 * @param {any} place
 * @param {(view: string) => boolean} has whether there is this view
 * @returns {Link[]}
 */
function linksOfPlace({ own, type, remedy }, has) {
  const within = own ? functionOf(own) : "";
  const owner = remedy?.match(/static ((?:\w+::)*\w+)/)?.[1] ?? type;
  /** @type {Link[]} */
  const blocks = within ? [["Its blocks", { view: "heap", within, by: "", only: "" }],
    ["Flame graph", { view: "heap", as: "flame", within: "", find: within }]] : [];
  /** @type {Link[]} */
  const owners = owner ? [["Its owner", { view: "types", find: owner }]] : [];
  return [...blocks, ...owners].filter(([, change]) => has(change.view));
}

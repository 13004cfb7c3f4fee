// What is chosen. It stands in the address, so that it outlives a reload and can be kept as a bookmark.
"use strict";

const DEFAULTS = {
  view: "trees", as: "", moment: "", first: "", second: "", base: "", filter: "", regex: "", verbose: "", units: "", by: "",
  within: "", cut: "", find: "", sort: "", at: "", colour: "", invert: "", only: "", count: "", then: "", rec: "", from: "", to: "", what: "",
};

/** What is left behind when another view is chosen: it means something to one view alone. */
const OF_VIEW = ["at", "sort", "find", "only", "as"];

/** The text fields whose content is chosen a moment after typing ends. */
const TYPED = ["filter", "within", "find"];

/** @returns {typeof DEFAULTS} what an address chooses; views that are layouts of others now are found under their old names */
function readAddress(hash = location.hash) {
  const known = Object.entries(DEFAULTS).map(([key]) => key);
  const given = [...new URLSearchParams(hash.slice(1))].filter(([key]) => known.includes(key));
  const read = { ...DEFAULTS, ...Object.fromEntries(given) };
  return read.view === "treemap" ? { ...read, view: "trees", as: "treemap" } : read;
}

/** The address of a choice: what differs from what is chosen at first. */
function addressOf(/** @type {Record<string, string>} */ choice) {
  const defaults = /** @type {Record<string, string>} */ (DEFAULTS);
  const different = Object.entries(choice).filter(([key, value]) => value !== defaults[key]);
  return `#${new URLSearchParams(different)}`;
}

/** A choice after a change: another view begins afresh. */
function changed(/** @type {typeof DEFAULTS} */ choice, /** @type {Record<string, string>} */ change) {
  const isOther = change.view !== undefined && change.view !== choice.view;
  const left = isOther ? Object.fromEntries(OF_VIEW.map(key => [key, ""])) : {};
  return { ...choice, ...left, ...change };
}

/** The items that the table or the graph has entered, by their ids. */
function wayOf(/** @type {string} */ at) {
  try {
    const way = at === "" ? [] : JSON.parse(at);
    return Array.isArray(way) ? way.map(String) : [];
  } catch {
    return [];
  }
}

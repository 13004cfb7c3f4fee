// Names of functions and types, short enough to be read in a box.
"use strict";

/**
 * Returns a name without what is in angle brackets; `<T as Trait>::f` is `T::f`.
 * @param {string} name
 */
function withoutGenerics(name) {
  let plain = name;
  if (plain.startsWith("<")) {
    const end = closing(plain, 0);
    if (end > 0) {
      const inside = plain.slice(1, end);
      const as = inside.indexOf(" as ");
      plain = withoutGenerics(as >= 0 ? topLevelBefore(inside) : inside) + plain.slice(end + 1);
    }
  }
  let [kept, depth] = ["", 0];
  for (let at = 0; at < plain.length; at++) {
    const letter = plain[at];
    if (letter === "<") {
      depth++;
    } else if (letter === ">" && plain[at - 1] !== "-") {
      depth = Math.max(0, depth - 1);
    } else if (depth === 0) {
      kept += letter;
    }
  }
  return kept.replaceAll("::::", "::").replace(/::$/, "");
}

/** Returns the place of the bracket that closes the one at `start`, or -1. */
function closing(/** @type {string} */ text, /** @type {number} */ start) {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    depth += text[at] === "<" ? 1 : text[at] === ">" && text[at - 1] !== "-" ? -1 : 0;
    if (depth === 0) {
      return at;
    }
  }
  return -1;
}

/** Returns what stands before ` as ` outside of angle brackets. */
function topLevelBefore(/** @type {string} */ text) {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    depth += text[at] === "<" ? 1 : text[at] === ">" && text[at - 1] !== "-" ? -1 : 0;
    if (depth === 0 && text.startsWith(" as ", at)) {
      return text.slice(0, at);
    }
  }
  return text;
}

/**
 * Returns ever shorter forms of a name, the longest first.
 * @param {string} name
 * @returns {string[]}
 */
function shorterNames(name) {
  // A function that was not found: its file and the address in it.
  const unknown = /^\?\?\?\[.*?([^/]+) (\+0x[0-9a-f]+)\]$/.exec(name);
  if (unknown) {
    return [`${unknown[1]} ${unknown[2]}`, unknown[2]];
  }
  const plain = withoutGenerics(name);
  const parts = plain.split("::");
  const forms = [plain, parts.slice(-2).join("::"), parts.at(-1) ?? plain];
  return [...new Set(forms)].filter(form => form !== "");
}

/**
 * Returns the crate of a function or a type: the first part of the first path in it; "" if it has none.
 * @param {string} name
 */
function crateOf(name) {
  const first = /(?:^|[^A-Za-z0-9_:])([A-Za-z_][A-Za-z0-9_]*)::/.exec(name);
  return first ? first[1] : "";
}

/** Returns a whole number that is the same for the same text. */
function hashOf(/** @type {string} */ text) {
  let hash = 2166136261;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 16777619) >>> 0;
  }
  return hash;
}

// Loads the page's scripts for tests, in the order in which the page has them, up to those that need a page.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const ASSETS = path.join(__dirname, "..");
const MODELS = ["numbers", "names", "forest", "tree", "text", "calls", "heap", "items", "census", "compare", "recording"].map(name => `model/${name}.js`);
const OTHERS = ["parts/flame.js", "parts/graph.js", "parts/treemap.js", "views/sheets.js", "page/data.js", "page/state.js", "page/header.js", "page/links.js"];

/** Returns the values of these names, as the scripts define them. */
exports.load = (...names) => {
  const text = [...MODELS, ...OTHERS].map(file => fs.readFileSync(path.join(ASSETS, file), "utf8")).join("\n");
  const context = vm.createContext({ URLSearchParams, Intl, location: { hash: "" }, Blob, DecompressionStream, Response });
  return vm.runInContext(`${text}\n({ ${names.join(", ")} })`, context);
};

/** Returns a value without the prototypes of the scripts' own world, which are others than the tests'. */
exports.plain = value => JSON.parse(JSON.stringify(value));

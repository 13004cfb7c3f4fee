"use strict";

const assert = require("node:assert");
const test = require("node:test");
const { load, plain } = require("./load.js");

const { withoutGenerics, shorterNames, crateOf } = load("withoutGenerics", "shorterNames", "crateOf");

test("names are shortened from the outside", () => {
  for (const [name, wanted] of [
    ["main", "main"],
    ["alloc::vec::Vec<T, A>::push", "alloc::vec::Vec::push"],
    ["<alloc::vec::Vec<T> as core::clone::Clone>::clone", "alloc::vec::Vec::clone"],
    ["core::ops::FnOnce<fn(u8) -> u8>::call", "core::ops::FnOnce::call"],
    ["shop::{{closure}}", "shop::{{closure}}"],
    ["<unclosed", ""],
    ["", ""],
  ]) {
    assert.strictEqual(withoutGenerics(name), wanted, name);
  }
  assert.deepStrictEqual(plain(shorterNames("a::b::C<D>::e")), ["a::b::C::e", "C::e", "e"]);
  assert.deepStrictEqual(plain(shorterNames("main")), ["main"]);
});

test("the crate is the first part of the first path", () => {
  for (const [name, wanted] of [
    ["shop::till::run", "shop"], ["<shop::Till as other::Trait>::run", "shop"], ["[shop::Item]", "shop"], ["Box<shop::Item>", "shop"],
    ["main", ""], ["[u8]", ""], ["static shop::LIST", "shop"],
  ]) {
    assert.strictEqual(crateOf(name), wanted, name);
  }
});

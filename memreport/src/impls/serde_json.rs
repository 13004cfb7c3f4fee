//! Measures values of `serde_json`, in each of its configurations. *Exact with the tracker*;
//! without it a *formula* for maps.
//!
//! With `preserve_order` and without ordered entries, the formula is the size of a table for the
//! length.

use alloc::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::btree::{Walk, add_lone_leaf};
use super::table::table_size;
use crate::tracker::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

/// True if a map is std's, and not `indexmap`'s. The two differ in size.
const IS_BTREE: bool = size_of::<Map<String, Value>>() == size_of::<BTreeMap<String, Value>>();

/// True if a number is the text from which it was read. Such a number differs in size.
const IS_TEXT: bool = size_of::<Number>() == size_of::<String>();

impl MallocSizeOf for Value {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => number.add_size_of_excluding_this(ops),
            Value::String(text) => text.add_size_of_excluding_this(ops),
            Value::Array(values) => values.add_size_of_excluding_this(ops),
            Value::Object(map) => map.add_size_of_excluding_this(ops),
        }
    }
}

impl MallocSizeOf for Number {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if IS_TEXT {
            ops.blocks_by_words(words_of(self), |_, _| true, self.to_string().len());
        }
    }
}

impl MallocShallowSizeOf for Map<String, Value> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        walk(self, ops, |_, _| {});
    }
}

impl MallocSizeOf for Map<String, Value> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add_with(self, |map, ops| {
            walk(map, ops, |key, value| {
                key.add_size_of_excluding_this(ops);
                value.add_size_of_excluding_this(ops);
            });
        });
    }
}

/// Counts the map's own blocks, and calls `each` with its entries.
fn walk<'a>(
    map: &'a Map<String, Value>,
    ops: &Ops<'a>,
    mut each: impl FnMut(&'a String, &'a Value),
) {
    let mut nodes = Walk::default();
    if IS_BTREE {
        add_lone_leaf::<String, Value, _>(ops, map, map.len());
    } else {
        let entries = map.len().saturating_mul(size_of::<(usize, String, Value)>());
        let places = table_size::<usize>(map.len());
        ops.blocks_by_words(words_of(map), |_, _| true, entries.saturating_add(places));
    }
    for (key, value) in map {
        if IS_BTREE {
            nodes.add_node(ops, key, value);
        }
        each(key, value);
    }
    nodes.count_last(ops);
}

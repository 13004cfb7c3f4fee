//! Measures maps and sets of `ordermap`, with any hasher, like those of `indexmap`. *Exact with the
//! tracker*; without it a *formula*: the entries and the table of the capacity.
//!
//! The hasher is not measured.

use ordermap::{OrderMap, OrderSet};

use super::indexmap::add_entries;
use super::maps::map_like;

map_like! {
    OrderMap<K, V, S>, [key: K, value: V], S => |map, ops| {
        add_entries::<(usize, K, V), _, _>(ops, map, map.hasher(), map.capacity());
    };
    OrderSet<T, S>, [element: T], S => |set, ops| {
        add_entries::<(usize, T), _, _>(ops, set, set.hasher(), set.capacity());
    };
}

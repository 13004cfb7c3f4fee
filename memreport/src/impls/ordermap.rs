//! Maps and sets of `ordermap`, with any hasher: those of `indexmap` with another equality. *Exact with the tracker*; without it a
//! *formula*: the entries and the table that the capacity takes.
//!
//! What the hasher owns is not measured.

use ordermap::{OrderMap, OrderSet};

use super::indexmap::add_entries;
use super::maps::map_like;

map_like! {
    OrderMap<K, V, S>, [key: K, value: V], S => |map, ops| {
        add_entries::<(usize, K, V), _, _>(ops, map, map.hasher(), map.capacity())
    };
    OrderSet<T, S>, [element: T], S => |set, ops| {
        add_entries::<(usize, T), _, _>(ops, set, set.hasher(), set.capacity())
    };
}

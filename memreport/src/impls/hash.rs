//! Measures hash maps and sets, with any hasher. *Exact with the tracker*; without it a *formula*.
//!
//! The hasher is not measured; std's owns nothing. The formula is the size of hashbrown's table for
//! the capacity. It also falls short after removals, which may leave a map with less capacity than
//! its table was made for.

use std::collections::{HashMap, HashSet};

use super::maps::map_like;
use super::table::{add_map_table, add_set_table};

map_like! {
    HashMap<K, V, S>, [key: K, value: V], S => |map, ops| add_map_table(ops, map, map.iter().next(), map.capacity());
    HashSet<T, S>, [element: T], S => |set, ops| add_set_table(ops, set, set.iter().next(), set.capacity());
}

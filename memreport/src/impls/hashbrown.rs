//! Measures maps, sets and tables of `hashbrown`, with any hasher. *Exact with the tracker*;
//! without it a *formula*, like std's maps.

use super::maps::map_like;
use super::table::{add_map_table, add_set_table};

/// Implements the traits for the maps, sets and tables of one version.
macro_rules! tables_of {
    ($hashbrown:ident) => {
        map_like! {
            $hashbrown::HashMap<K, V, S>, [key: K, value: V], S => |map, ops| {
                add_map_table(ops, map, map.iter().next(), map.capacity());
            };
            $hashbrown::HashSet<T, S>, [element: T], S => |set, ops| {
                add_set_table(ops, set, set.iter().next(), set.capacity());
            };
            $hashbrown::HashTable<T>, [element: T] => |table, ops| {
                add_set_table(ops, table, table.iter().next(), table.capacity());
            };
        }
    };
}

#[cfg(feature = "hashbrown")]
tables_of!(hashbrown);
#[cfg(feature = "hashbrown-0_15")]
tables_of!(hashbrown_0_15);

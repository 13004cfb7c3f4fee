//! Measures maps and sets of `indexmap`, with any hasher. *Exact with the tracker*; without it a
//! *formula*: the entries and the table of the capacity.
//!
//! The hasher is not measured.

use indexmap::{IndexMap, IndexSet};

use super::maps::map_like;
use super::table::{is_table, table_size};
use crate::Ops;
use crate::tracker::words::words_outside;

map_like! {
    IndexMap<K, V, S>, [key: K, value: V], S => |map, ops| {
        add_entries::<(usize, K, V), _, _>(ops, map, map.hasher(), map.capacity());
    };
    IndexSet<T, S>, [element: T], S => |set, ops| {
        add_entries::<(usize, T), _, _>(ops, set, set.hasher(), set.capacity());
    };
}

/// Adds the entries of type `E`, each with its hash, and the table of their indices.
pub(super) fn add_entries<E, M, S>(ops: &Ops<'_>, map: &M, hasher: &S, capacity: usize) {
    let bytes =
        capacity.saturating_mul(size_of::<E>()).saturating_add(table_size::<usize>(capacity));
    ops.blocks_by_words(words_outside(map, hasher), is_own::<E>, bytes);
}

/// Returns whether a block holds the entries of type `E`, each with its hash, or the table of their
/// indices.
fn is_own<E>(offset: usize, requested: usize) -> bool {
    is_table::<usize>(offset, requested) || (offset == 0 && requested % size_of::<E>() == 0)
}

//! The table of hashbrown, which std's maps and many others are made of: how big it is, and how it is found.
#![cfg_attr(
    not(any(feature = "std", feature = "hashbrown", feature = "hashbrown-0_15")),
    expect(dead_code, reason = "what is made of the table needs not all of it")
)]

use crate::Ops;
use crate::allocator::words::words_of;

/// The address of the part of an entry that has a size: an empty part may lie behind the table's end.
pub(super) fn inside<K, V>(key: &K, value: &V) -> *const u8 {
    if size_of::<K>() > 0 {
        core::ptr::from_ref(key).cast()
    } else {
        core::ptr::from_ref(value).cast()
    }
}

/// Counts the table with entries of type `E` that `map` owns, or where it cannot be found, so many bytes.
pub(super) fn add_table<E, M>(ops: &Ops<'_>, map: &M, entry: Option<*const u8>, bytes: usize) {
    match entry {
        Some(entry) if size_of::<E>() > 0 => ops.enclosing_block(entry, bytes),
        // With nothing to point at, the map's own pointer is to be found: it leads to where a table's control bytes begin.
        _ => {
            if !ops.block_by_words(words_of(map), is_table::<E>) && bytes > 0 {
                ops.computed(bytes);
            }
        }
    }
}

/// Adds the table of a map, by any entry of it or by the pointer that the map holds.
pub(super) fn add_map_table<K, V, M>(
    ops: &Ops<'_>,
    map: &M,
    entry: Option<(&K, &V)>,
    capacity: usize,
) {
    let entry = entry.map(|(key, value)| inside(key, value));
    add_table::<(K, V), M>(ops, map, entry, table_size::<(K, V)>(capacity));
}

/// Adds the table of a set, by any element of it or by the pointer that the set holds.
pub(super) fn add_set_table<T, M>(ops: &Ops<'_>, set: &M, element: Option<&T>, capacity: usize) {
    let element = element.map(|element| inside(element, &()));
    add_table::<T, M>(ops, set, element, table_size::<T>(capacity));
}

/// Whether a block of that size is a table with entries of type `E`, whose control bytes begin at this offset.
pub(super) fn is_table<E>(offset: usize, requested: usize) -> bool {
    (0..usize::BITS - 1)
        .map(|bits| table::<E>(1 << bits))
        .any(|(size, control)| (control, size) == (offset, requested))
}

/// Whether a block of that size is a table with entries of type `E`, whichever part of it is pointed to.
#[cfg(feature = "std")]
pub(super) fn has_table_size<E>(requested: usize) -> bool {
    (0..usize::BITS - 1).any(|bits| table::<E>(1 << bits).0 == requested)
}

/// The size of a table for so many entries of type `E`.
pub(super) fn table_size<E>(capacity: usize) -> usize {
    if capacity == 0 { 0 } else { table::<E>(buckets(capacity)).0 }
}

/// The number of buckets that hashbrown makes for so many entries: of each 8, 7 may be taken.
fn buckets(capacity: usize) -> usize {
    match capacity {
        ..4 => 4,
        4..8 => 8,
        _ => (capacity.saturating_mul(8) / 7).next_power_of_two(),
    }
}

/// How many control bytes hashbrown looks at at once.
const GROUP: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };

/// The size of hashbrown's table, and where in it the control bytes begin: behind the entries, one for each bucket and another
/// group of them.
fn table<E>(buckets: usize) -> (usize, usize) {
    let align = align_of::<E>().max(GROUP);
    let entries = size_of::<E>().saturating_mul(buckets).saturating_add(align - 1) & !(align - 1);
    (entries.saturating_add(buckets + GROUP), entries)
}

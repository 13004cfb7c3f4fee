//! Computes the size of hashbrown's table, which std's maps and many others use, and finds its
//! block.
#![cfg_attr(
    not(any(feature = "std", feature = "hashbrown", feature = "hashbrown-0_15")),
    expect(dead_code, reason = "what is made of the table needs not all of it")
)]

use crate::Ops;
use crate::tracker::words::words_of;

/// Returns the address of the part of an entry that has a size: an empty part may lie beyond the
/// table's end.
pub(super) fn inside<K, V>(key: &K, value: &V) -> *const u8 {
    if size_of::<K>() > 0 {
        core::ptr::from_ref(key).cast()
    } else {
        core::ptr::from_ref(value).cast()
    }
}

/// Adds the table with entries of type `E` that `map` owns, or `bytes` computed bytes if it cannot
/// be found.
pub(super) fn add_table<E, M>(ops: &Ops<'_>, map: &M, entry: Option<*const u8>, bytes: usize) {
    match entry {
        Some(entry) if size_of::<E>() > 0 => ops.enclosing_block(entry, bytes),
        // Without an entry, the map's own pointer is used: it points to the start of the control
        // bytes.
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

/// Returns whether a block of this size is a table with entries of type `E` whose control bytes
/// begin at this offset.
pub(super) fn is_table<E>(offset: usize, requested: usize) -> bool {
    (0..usize::BITS - 1)
        .map(|bits| table::<E>(1 << bits))
        .any(|(size, control)| (control, size) == (offset, requested))
}

/// Returns whether a block of this size is a table with entries of type `E`, at any offset.
#[cfg(feature = "std")]
pub(super) fn has_table_size<E>(requested: usize) -> bool {
    (0..usize::BITS - 1).any(|bits| table::<E>(1 << bits).0 == requested)
}

/// Returns the size of a table for this many entries of type `E`.
pub(super) fn table_size<E>(capacity: usize) -> usize {
    if capacity == 0 { 0 } else { table::<E>(buckets(capacity)).0 }
}

/// Returns the number of buckets that hashbrown makes for this many entries: 7 of 8 may be used.
fn buckets(capacity: usize) -> usize {
    match capacity {
        ..4 => 4,
        4..8 => 8,
        _ => (capacity.saturating_mul(8) / 7).next_power_of_two(),
    }
}

/// The number of control bytes that hashbrown compares at once.
const GROUP: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };

/// Returns the size of hashbrown's table and the offset of its control bytes.
///
/// The control bytes follow the entries: one for each bucket, and another group.
fn table<E>(buckets: usize) -> (usize, usize) {
    let align = align_of::<E>().max(GROUP);
    let entries = size_of::<E>().saturating_mul(buckets).saturating_add(align - 1) & !(align - 1);
    (entries.saturating_add(buckets + GROUP), entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_every_number_of_buckets_are_known_and_others_are_not() {
        type Entry = [u8; 24];
        for bits in 2..20 {
            let (size, control) = table::<Entry>(1 << bits);
            assert_eq!(size, (24 << bits) + (1 << bits) + GROUP);
            assert!(is_table::<Entry>(control, size), "{bits}");
            assert!(!is_table::<Entry>(control, size + 1), "{bits}");
            assert!(!is_table::<Entry>(control + GROUP, size), "{bits}");
            #[cfg(feature = "std")]
            assert!(has_table_size::<Entry>(size) && !has_table_size::<Entry>(size + 1), "{bits}");
        }
    }
}

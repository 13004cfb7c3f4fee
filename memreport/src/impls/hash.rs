//! Hash maps and sets, with any hasher. *Exact with the tracker*; without it a *formula*.
//!
//! What the hasher owns is not measured; that of std owns nothing.
//!
//! The formula is the size of hashbrown's table for the capacity. It falls short by what the allocator rounds up, and after
//! removals, which may leave a map with less capacity than its table was made for.

use std::collections::{HashMap, HashSet};

use crate::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<K, V, S> MallocShallowSizeOf for HashMap<K, V, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let entry = self.iter().next().map(|(key, value)| inside(key, value));
        add_table::<(K, V), Self>(ops, self, entry, table_size::<(K, V)>(self.capacity()));
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for HashMap<K, V, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        if K::owns_nothing() && V::owns_nothing() {
            return;
        }
        ops.add_with(self, |map, ops| {
            ops.each_ahead(map.iter(), |(key, value)| {
                key.add_size_of_excluding_this(ops);
                value.add_size_of_excluding_this(ops);
            });
        });
    }
}

impl<T, S> MallocShallowSizeOf for HashSet<T, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let entry = self.iter().next().map(|element| inside(element, &()));
        add_table::<T, Self>(ops, self, entry, table_size::<T>(self.capacity()));
    }
}

impl<T: MallocSizeOf, S> MallocSizeOf for HashSet<T, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        if T::owns_nothing() {
            return;
        }
        ops.add_with(self, |set, ops| {
            ops.each_ahead(set.iter(), |element| {
                element.add_size_of_excluding_this(ops);
            });
        });
    }
}

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

/// Whether a block of that size is a table with entries of type `E`, whose control bytes begin at this offset.
pub(super) fn is_table<E>(offset: usize, requested: usize) -> bool {
    (0..usize::BITS - 1)
        .map(|bits| table::<E>(1 << bits))
        .any(|(size, control)| (control, size) == (offset, requested))
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

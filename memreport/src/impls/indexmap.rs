//! Maps and sets of `indexmap`, with any hasher. *Exact with the tracker*; without it a *formula*: the entries and the table that
//! the capacity takes.
//!
//! What the hasher owns is not measured.

use indexmap::{IndexMap, IndexSet};

use super::table::{is_table, table_size};
use crate::words::words_around;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<K, V, S> MallocShallowSizeOf for IndexMap<K, V, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let bytes = size::<(usize, K, V)>(self.capacity());
        ops.blocks_by_words(words_around(self, self.hasher()), is_own::<(usize, K, V)>, bytes);
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for IndexMap<K, V, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add_with(self, |map, ops| {
            ops.each_ahead(map.iter(), |(key, value)| {
                key.add_size_of_excluding_this(ops);
                value.add_size_of_excluding_this(ops);
            });
        });
    }
}

impl<T, S> MallocShallowSizeOf for IndexSet<T, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let bytes = size::<(usize, T)>(self.capacity());
        ops.blocks_by_words(words_around(self, self.hasher()), is_own::<(usize, T)>, bytes);
    }
}

impl<T: MallocSizeOf, S> MallocSizeOf for IndexSet<T, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add_with(self, |set, ops| {
            ops.each_ahead(set.iter(), |element| element.add_size_of_excluding_this(ops));
        });
    }
}

/// Whether a block is the entries of type `E`, each with its hash, or the table of their places.
pub(super) fn is_own<E>(offset: usize, requested: usize) -> bool {
    is_table::<usize>(offset, requested) || (offset == 0 && requested % size_of::<E>() == 0)
}

/// The size of so many entries of type `E`, each with its hash, and of the table of their places.
pub(super) fn size<E>(capacity: usize) -> usize {
    capacity.saturating_mul(size_of::<E>()).saturating_add(table_size::<usize>(capacity))
}

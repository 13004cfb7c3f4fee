//! Maps and sets of `ordermap`, with any hasher: those of `indexmap` with another equality. *Exact with the tracker*; without it a
//! *formula*: the entries and the table that the capacity takes.
//!
//! What the hasher owns is not measured.

use ordermap::{OrderMap, OrderSet};

use super::indexmap::{is_own, size};
use crate::words::words_around;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<K, V, S> MallocShallowSizeOf for OrderMap<K, V, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let bytes = size::<(usize, K, V)>(self.capacity());
        ops.blocks_by_words(words_around(self, self.hasher()), is_own::<(usize, K, V)>, bytes);
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for OrderMap<K, V, S> {
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

impl<T, S> MallocShallowSizeOf for OrderSet<T, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let bytes = size::<(usize, T)>(self.capacity());
        ops.blocks_by_words(words_around(self, self.hasher()), is_own::<(usize, T)>, bytes);
    }
}

impl<T: MallocSizeOf, S> MallocSizeOf for OrderSet<T, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add_with(self, |set, ops| {
            ops.each_ahead(set.iter(), |element| element.add_size_of_excluding_this(ops));
        });
    }
}

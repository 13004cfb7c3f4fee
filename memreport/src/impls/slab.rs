//! Measures slabs of `slab`. *Exact with the tracker*; without it the entries of the capacity.

use slab::Slab;

use crate::tracker::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

/// A copy of the slab's entry.
#[expect(dead_code, reason = "only its size is of interest")]
enum Entry<T> {
    Vacant(usize),
    Occupied(T),
}

impl<T> MallocShallowSizeOf for Slab<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let bytes = self.capacity().saturating_mul(size_of::<Entry<T>>());
        ops.blocks_by_words(words_of(self), |_, _| true, bytes);
    }
}

impl<T: MallocSizeOf> MallocSizeOf for Slab<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add_with(self, |slab, ops| {
            for (_, value) in slab {
                value.add_size_of_excluding_this(ops);
            }
        });
    }
}

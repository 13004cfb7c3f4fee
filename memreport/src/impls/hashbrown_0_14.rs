//! Measures maps, sets and raw tables of `hashbrown` 0.14, with any hasher. *Exact*: this version
//! exposes its table.
#![expect(unsafe_code, reason = "vouches for the block of a table, and looks into its buckets")]

use hashbrown_0_14::raw::RawTable;
use hashbrown_0_14::{HashMap, HashSet};

use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T> MallocShallowSizeOf for RawTable<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        // The static table that all empty maps share has one bucket.
        if self.buckets() > 1 {
            let (start, layout) = self.allocation_info();
            // SAFETY: the function returns the start and the layout of the table's block.
            unsafe { ops.block(start.as_ptr(), layout) };
        }
    }
}

impl<T: MallocSizeOf> MallocSizeOf for RawTable<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add_with(self, |table, ops| {
            // SAFETY: the table is borrowed, so it outlives the iterator.
            for bucket in unsafe { table.iter() } {
                // SAFETY: a full bucket of a borrowed table.
                let entry: &'a T = unsafe { bucket.as_ref() };
                entry.add_size_of_excluding_this(ops);
            }
        });
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for HashMap<K, V, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.raw_table().add_size_of_excluding_this(ops);
    }
}

impl<K, V, S> MallocShallowSizeOf for HashMap<K, V, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self.raw_table());
    }
}

impl<T: MallocSizeOf, S> MallocSizeOf for HashSet<T, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.raw_table().add_size_of_excluding_this(ops);
    }
}

impl<T, S> MallocShallowSizeOf for HashSet<T, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self.raw_table());
    }
}

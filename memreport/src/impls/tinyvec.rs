//! Measures vectors of `tinyvec`, in the value itself or on the heap. *Exact.*

use tinyvec::{Array, ArrayVec, SliceVec, TinyVec};

use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<A: Array<Item: MallocSizeOf>> MallocSizeOf for ArrayVec<A> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.as_slice().add_size_of_excluding_this(ops);
    }
}

/// Borrowed values belong to their owner.
impl<T> MallocSizeOf for SliceVec<'_, T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

impl<A: Array> MallocShallowSizeOf for TinyVec<A> {
    #[inline]
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        match self {
            TinyVec::Inline(_) => {}
            TinyVec::Heap(values) => ops.shallow(values),
        }
    }
}

impl<A: Array<Item: MallocSizeOf>> MallocSizeOf for TinyVec<A> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self {
            TinyVec::Inline(values) => values.add_size_of_excluding_this(ops),
            TinyVec::Heap(values) => values.add_size_of_excluding_this(ops),
        }
    }
}

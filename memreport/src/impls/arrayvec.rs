//! Measures vectors and text of `arrayvec`, which lie in the value itself. *Exact.*

use arrayvec::{ArrayString, ArrayVec};

use crate::{MallocSizeOf, Ops};

impl<T: MallocSizeOf, const CAP: usize> MallocSizeOf for ArrayVec<T, CAP> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.as_slice().add_size_of_excluding_this(ops);
    }
}

impl<const CAP: usize> MallocSizeOf for ArrayString<CAP> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

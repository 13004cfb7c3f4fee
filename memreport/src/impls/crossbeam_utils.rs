//! Measures the values inside wrappers of `crossbeam-utils`. *Exact.*

use crossbeam_utils::CachePadded;
use crossbeam_utils::atomic::AtomicCell;

use crate::{MallocSizeOf, Ops};

impl<T: MallocSizeOf> MallocSizeOf for CachePadded<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        (**self).add_size_of_excluding_this(ops);
    }
}

/// `Copy` values own nothing.
impl<T: Copy> MallocSizeOf for AtomicCell<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

//! Pointers of `arc-swap`: as the `Arc` that they hold at this moment, of which they are one owner. *Exact.*

use arc_swap::strategy::Strategy;
use arc_swap::{ArcSwapAny, RefCnt};

use crate::{MallocSizeOf, Ops};

/// What another thread puts in its place meanwhile is not measured.
impl<T: RefCnt + MallocSizeOf, S: Strategy<T>> MallocSizeOf for ArcSwapAny<T, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.measure_borrowed(&*self.load(), T::add_size_of_excluding_this);
    }
}

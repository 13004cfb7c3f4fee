//! Measures pointers of `arc-swap` as the `Arc` that they hold at this moment. *Exact.*

use arc_swap::strategy::Strategy;
use arc_swap::{ArcSwapAny, RefCnt};

use crate::{MallocSizeOf, Ops};

/// A value that another thread stores meanwhile is not measured.
impl<T: RefCnt + MallocSizeOf, S: Strategy<T>> MallocSizeOf for ArcSwapAny<T, S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.measure_borrowed(&*self.load(), T::add_size_of_excluding_this);
    }
}

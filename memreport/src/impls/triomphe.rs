//! Measures reference counted values of `triomphe`. *Exact with the tracker*; without it the count
//! and the value.
//!
//! One of the owners counts the block.

use core::alloc::Layout;

use triomphe::Arc;

use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T: ?Sized> MallocShallowSizeOf for Arc<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        counted(self, ops);
    }
}

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Arc<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if counted(self, ops) {
            ops.add::<T>(self);
        }
    }
}

/// Counts the block. Returns whether to measure the value here.
fn counted<T: ?Sized>(value: &Arc<T>, ops: &Ops<'_>) -> bool {
    let layout = Layout::new::<usize>().extend(Layout::for_value::<T>(value));
    let bytes = layout.map_or(0, |(whole, _)| whole.pad_to_align().size());
    // The memory before the value is in the block, even if the value has no size.
    let inside = core::ptr::from_ref::<T>(value).cast::<u8>().wrapping_sub(1);
    ops.shared_enclosing_block(inside, bytes, Arc::count(value))
}

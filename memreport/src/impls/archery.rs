//! Measures reference counted pointers of `archery`, of any kind. *Exact with the tracker*; without
//! it two counts and the value.
//!
//! One of the owners counts the block.

use archery::{SharedPointer, SharedPointerKind};

use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T, P: SharedPointerKind> MallocShallowSizeOf for SharedPointer<T, P> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        counted::<T>(ops, self);
    }
}

impl<T: MallocSizeOf, P: SharedPointerKind> MallocSizeOf for SharedPointer<T, P> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if counted::<T>(ops, self) {
            ops.add::<T>(self);
        }
    }
}

/// Counts the block of a value behind the counts of its owners. Returns whether to measure the
/// value here.
pub(super) fn counted<T>(ops: &Ops<'_>, value: &T) -> bool {
    let bytes = (size_of::<[usize; 2]>() + size_of::<T>()).next_multiple_of(size_of::<usize>());
    // The memory before the value is in the block, even if the value has no size.
    let inside = core::ptr::from_ref(value).cast::<u8>().wrapping_sub(1);
    ops.shared_enclosing_block(inside, bytes, usize::MAX)
}

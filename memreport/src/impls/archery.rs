//! Reference counted pointers of `archery`, of any kind: one block with several owners, counted by one of them. *Exact with the tracker*;
//! without it two counts and the value, short of what the allocator rounds up.

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

/// Counts the block that a value is alone in, behind the counts of its owners; says whether the value is to be measured here.
pub(super) fn counted<T>(ops: &Ops<'_>, value: &T) -> bool {
    let bytes = (size_of::<[usize; 2]>() + size_of::<T>()).next_multiple_of(size_of::<usize>());
    // What lies before the value is in the block, even where the value has no size.
    let inside = core::ptr::from_ref(value).cast::<u8>().wrapping_sub(1);
    ops.shared_enclosing_block(inside, bytes, usize::MAX)
}

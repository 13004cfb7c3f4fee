//! Vectors and what is like them: one block, slack included, and what the elements own. *Exact.*
#![expect(unsafe_code, reason = "vouches for the block that each of these owns")]

use alloc::collections::BinaryHeap;
use core::alloc::Layout;

use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T> MallocShallowSizeOf for Vec<T> {
    #[inline]
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: a vector with capacity owns a block for that many elements, and `as_ptr` is its start.
        unsafe { elements(ops, self.as_ptr(), self.capacity()) };
    }
}

impl<T: MallocSizeOf> MallocSizeOf for Vec<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add(self.as_slice());
    }
}

impl<T> MallocShallowSizeOf for BinaryHeap<T> {
    #[inline]
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: a heap is a vector, and the slice of its elements begins where that does.
        unsafe { elements(ops, self.as_slice().as_ptr(), self.capacity()) };
    }
}

impl<T: MallocSizeOf> MallocSizeOf for BinaryHeap<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add(self.as_slice());
    }
}

/// A slice owns what its elements own.
impl<T: MallocSizeOf> MallocSizeOf for [T] {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        for element in self {
            element.add_size_of_excluding_this(ops);
        }
    }
}

/// An array owns what its elements own.
impl<T: MallocSizeOf, const N: usize> MallocSizeOf for [T; N] {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.as_slice().add_size_of_excluding_this(ops);
    }
}

/// Counts the block of a vector.
///
/// # Safety
///
/// Unless the capacity or the size of `T` is 0, `start` is the start of a live block for that many elements.
#[inline]
pub(super) unsafe fn elements<T>(ops: &Ops<'_>, start: *const T, capacity: usize) {
    // Fails for types of size 0, whose capacity has no limit; they own no block.
    let Ok(layout) = Layout::array::<T>(capacity) else { return };
    // SAFETY: handed on.
    unsafe { ops.block(start, layout) };
}

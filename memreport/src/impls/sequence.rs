//! Vectors and what is like them: one block, slack included, and what the elements own. *Exact*; an iterator over a vector *exact
//! with the tracker*, and without it the size of what is left to come.
#![expect(unsafe_code, reason = "vouches for the block that each of these owns")]

use alloc::collections::BinaryHeap;
use alloc::vec::{self, Vec};
use core::alloc::Layout;

use crate::allocator::words::words_of;
use crate::{Lookahead, MallocShallowSizeOf, MallocSizeOf, Ops};

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
        if core::mem::needs_drop::<T>() {
            ops.add(self.as_slice());
        } else {
            // Mostly numbers, which lead nowhere deep.
            self.as_slice().add_size_of_excluding_this(ops);
        }
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.elements(self.as_slice());
    }

    #[inline]
    fn prefetch_behind(&self, ahead: Lookahead<'_>) {
        ahead.behind_elements(self);
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

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.elements(self.as_slice());
    }

    #[inline]
    fn prefetch_behind(&self, ahead: Lookahead<'_>) {
        ahead.behind_elements(self.as_slice());
    }
}

/// What is left to come, and the buffer that it lies in.
impl<T: MallocSizeOf> MallocSizeOf for vec::IntoIter<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let left = size_of_val(self.as_slice());
        let is_buffer = |offset, requested: usize| {
            offset == 0 && requested >= left && requested % size_of::<T>() == 0
        };
        if size_of::<T>() > 0 && !ops.block_by_words(words_of(self), is_buffer) && left > 0 {
            ops.computed(left);
        }
        ops.add(self.as_slice());
    }
}

/// A slice owns what its elements own.
impl<T: MallocSizeOf> MallocSizeOf for [T] {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.each_of_slice(self, |element| element.add_size_of_excluding_this(ops));
    }
}

/// An array owns what its elements own.
impl<T: MallocSizeOf, const N: usize> MallocSizeOf for [T; N] {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.as_slice().add_size_of_excluding_this(ops);
    }

    #[inline]
    fn owns_nothing() -> bool {
        T::owns_nothing()
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        self.iter().for_each(|element| element.prefetch(ahead));
    }

    #[inline]
    fn prefetch_behind(&self, ahead: Lookahead<'_>) {
        self.iter().for_each(|element| element.prefetch_behind(ahead));
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

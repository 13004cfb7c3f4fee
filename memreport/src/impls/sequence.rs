//! Measures vectors and similar types: one block with spare capacity, and the elements. *Exact.*
//!
//! An iterator over a vector is *exact with the tracker*; without it the size of the remaining
//! elements.
#![expect(unsafe_code, reason = "vouches for the block that each of these owns")]

use alloc::collections::BinaryHeap;
use alloc::vec::{self, Vec};
use core::alloc::Layout;

use crate::tracker::words::{Words, words_of};
use crate::{Lookahead, MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T> MallocShallowSizeOf for Vec<T> {
    #[inline]
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: a vector with capacity owns a block for that many elements, and `as_ptr` is its
        // start.
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
            // Mostly numbers, which have no deep structure.
            self.as_slice().add_size_of_excluding_this(ops);
        }
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.elements(self.as_slice());
    }

    #[inline]
    fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
        ahead.pointees_of_elements(self);
    }
}

impl<T> MallocShallowSizeOf for BinaryHeap<T> {
    #[inline]
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: a heap is a vector, and the slice of its elements begins at the vector's start.
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
    fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
        ahead.pointees_of_elements(self.as_slice());
    }
}

/// Measures the remaining elements and the buffer.
impl<T: MallocSizeOf> MallocSizeOf for vec::IntoIter<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let left = size_of_val(self.as_slice());
        let is_buffer = |offset, requested: usize| {
            offset == 0 && requested >= left && requested % size_of::<T>() == 0
        };
        let words = words_before_end::<T>(&words_of(self), self.len());
        if size_of::<T>() > 0 && !ops.block_by_words(words, is_buffer) && left > 0 {
            ops.computed(left);
        }
        ops.add(self.as_slice());
    }
}

/// Returns the words of an iterator over a vector with `left` elements left, without the pointer to
/// the elements' end. Where that is the buffer's end too, another block may start there.
pub(super) fn words_before_end<'v, T>(
    words: &Words<'v>,
    left: usize,
) -> impl Iterator<Item = usize> + Clone + use<'v, T> {
    // The capacity is smaller than the three addresses, and the end is the greatest.
    let (capacity, end) = words
        .clone()
        .fold((usize::MAX, 0), |(capacity, end), word| (word.min(capacity), word.max(end)));
    let of_buffer = capacity.saturating_mul(size_of::<T>());
    let begins_before = |word: usize| word > capacity && (1..=of_buffer).contains(&(end - word));
    // Where nothing is left, an iterator that has not begun is all at the start.
    let is_end_other = left > 0 || words.clone().any(begins_before);
    words.clone().filter(move |word| !is_end_other || *word != end)
}

/// A slice owns the blocks that its elements own.
impl<T: MallocSizeOf> MallocSizeOf for [T] {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.each_of_slice(self, |element| element.add_size_of_excluding_this(ops));
    }
}

/// An array owns the blocks that its elements own.
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
    fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
        self.iter().for_each(|element| element.prefetch_pointees(ahead));
    }
}

/// Counts the block of a vector.
///
/// # Safety
///
/// Unless the capacity or the size of `T` is 0, `start` is the start of a live block for that many
/// elements.
#[inline]
pub(super) unsafe fn elements<T>(ops: &Ops<'_>, start: *const T, capacity: usize) {
    // Fails for types of size 0, whose capacity has no limit. They own no block.
    let Ok(layout) = Layout::array::<T>(capacity) else { return };
    // SAFETY: the caller's contract is passed through.
    unsafe { ops.block(start, layout) };
}

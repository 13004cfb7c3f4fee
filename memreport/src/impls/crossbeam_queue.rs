//! Measures the own blocks of queues of `crossbeam`. *Lower bounds*: queued elements are not
//! measured.
//!
//! *Exact with the tracker* if the elements own nothing: an `ArrayQueue` always, a `SegQueue` with
//! up to 62 elements.

use crossbeam_queue::{ArrayQueue, SegQueue};

use crate::tracker::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

impl<T> MallocShallowSizeOf for ArrayQueue<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let bytes = self.capacity().saturating_mul(size_of::<(usize, T)>());
        let is_buffer = |offset, requested| offset == 0 && requested == bytes;
        if !ops.block_by_words(words_of(self), is_buffer) {
            ops.computed(bytes);
        }
    }
}

/// Elements are not measured.
impl<T> MallocSizeOf for ArrayQueue<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
    }
}

/// The number of elements in a block of a `SegQueue`.
const SLOTS: usize = 31;

/// Counts the first and the last block, to which the queue itself points.
impl<T> MallocShallowSizeOf for SegQueue<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let blocks = self.len().div_ceil(SLOTS);
        let block = size_of::<(usize, [(T, usize); SLOTS])>();
        // Both ends of the queue begin with two words, one of which points to a block. Padding
        // follows.
        let is_word = |(index, _): &(usize, usize)| {
            index * size_of::<usize>() % align_of::<Self>() < size_of::<[usize; 2]>()
        };
        let words = words_of(self).enumerate().filter(is_word).map(|(_, word)| word);
        let is_block = |offset, requested| offset == 0 && requested == block;
        ops.blocks_by_words(words, is_block, blocks.saturating_mul(block));
    }
}

/// Elements are not measured.
impl<T> MallocSizeOf for SegQueue<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
    }
}

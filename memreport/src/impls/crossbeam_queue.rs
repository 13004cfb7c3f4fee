//! Queues of `crossbeam`: their own blocks; what waits in them cannot be seen. *Lower bounds*, and *exact with the tracker* where
//! the elements own nothing: of an `ArrayQueue` always, of a `SegQueue` up to 62 elements.

use crossbeam_queue::{ArrayQueue, SegQueue};

use crate::allocator::words::words_of;
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

/// The elements are not seen.
impl<T> MallocSizeOf for ArrayQueue<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
    }
}

/// Elements in a block of a `SegQueue`.
const SLOTS: usize = 31;

/// The first and the last block, which the queue itself leads to.
impl<T> MallocShallowSizeOf for SegQueue<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let blocks = self.len().div_ceil(SLOTS);
        let block = size_of::<(usize, [(T, usize); SLOTS])>();
        // Both ends of the queue begin with two words, of which one leads to a block; behind them is padding.
        let is_word = |(index, _): &(usize, usize)| {
            index * size_of::<usize>() % align_of::<Self>() < size_of::<[usize; 2]>()
        };
        let words = words_of(self).enumerate().filter(is_word).map(|(_, word)| word);
        let is_block = |offset, requested| offset == 0 && requested == block;
        ops.blocks_by_words(words, is_block, blocks.saturating_mul(block));
    }
}

/// The elements are not seen.
impl<T> MallocSizeOf for SegQueue<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
    }
}

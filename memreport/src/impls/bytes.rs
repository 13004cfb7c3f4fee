//! Measures slices of shared memory, of `bytes`. *Exact with the tracker*; without it a *formula*:
//! the length of the slice.
//!
//! With the tracker, the memory counts once for all slices of it, with the block that counts the
//! owners. If an empty slice is the last owner, only that block is counted.

use bytes::{Bytes, BytesMut};

use crate::tracker::words::words_of;
use crate::{Lookahead, MallocSizeOf, Ops};

impl MallocSizeOf for Bytes {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if is_whole_block(self) && ops.whole_block(self.as_ptr(), self.len()) {
            return;
        }
        // Static slices own nothing: the word that would point to the owners is null.
        if words_of(self).any(|word| word == 0) && !self.is_empty() {
            return;
        }
        let owners = if self.is_unique() { 1 } else { usize::MAX };
        add_handle(ops, self, self.as_ptr(), self.len(), owners);
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        if !is_whole_block(self) {
            ahead.words(words_of(self));
            // The block with the number of owners.
            let start = self.as_ptr().addr();
            words_of(self).filter(|word| *word != start).for_each(|word| ahead.address(word));
        }
    }
}

impl MallocSizeOf for BytesMut {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_handle(ops, self, self.as_ptr(), self.capacity(), usize::MAX);
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.words(words_of(self));
    }
}

/// Returns whether the slice is a whole block of one owner. Its handle then has the block's start a
/// second time, with the lowest bit set.
fn is_whole_block(slice: &Bytes) -> bool {
    let start = slice.as_ptr().addr();
    start % 2 == 0 && !slice.is_empty() && words_of(slice).any(|word| word == start | 1)
}

/// Counts the blocks that a handle points to.
fn add_handle<H>(ops: &Ops<'_>, handle: &H, start: *const u8, bytes: usize, owners: usize) {
    // An empty slice may point into memory that it does not own.
    let words = words_of(handle).filter(|word| bytes > 0 || *word != start.addr());
    ops.shared_blocks_by_words(words, (start, bytes), owners);
}

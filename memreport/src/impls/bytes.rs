//! Measures slices of shared memory, of `bytes`. *Exact with the tracker*; without it a *formula*:
//! the length of the slice.
//!
//! With the tracker, the memory counts once for all slices of it, with the block that counts the
//! owners. If an empty slice is the last owner, only that block is counted.
#![expect(unsafe_code, reason = "vouches for the blocks that a handle keeps alive")]

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
        let memory = (self.as_ptr(), self.len());
        add_handle(ops, self, memory, [self.len(); 2], owners);
    }

    // Not inlined, here and below: a dev build of a program would compile it, unoptimized.
    #[inline(never)]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        if is_whole_block(self) {
            ahead.supposed_block(self.as_ptr());
        } else {
            let (start, length) = (self.as_ptr().addr(), self.len());
            let pointers = words_of(self).filter(|word| *word != length);
            ahead.words(pointers.clone());
            // The block with the number of owners. It may lie in two lines.
            pointers.filter(|word| *word != start).for_each(|word| {
                ahead.address(word);
                ahead.address(word.wrapping_add(2 * size_of::<usize>()));
            });
        }
    }
}

impl MallocSizeOf for BytesMut {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let memory = (self.as_ptr(), self.capacity());
        add_handle(ops, self, memory, [self.len(), self.capacity()], usize::MAX);
    }

    #[inline(never)]
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

/// Counts the blocks of a handle. Its words are the start of the slice, a pointer to the block that
/// counts the owners, pointers to functions, and these `sizes`.
fn add_handle<H>(
    ops: &Ops<'_>,
    handle: &H,
    (start, bytes): (*const u8, usize),
    sizes: [usize; 2],
    owners: usize,
) {
    let is_start = |word| !sizes.contains(&word);
    // SAFETY: the pointer to the owners' block is the only one to the start of a block, since the
    // sizes are left out.
    unsafe { ops.shared_memory(&words_of(handle), is_start, (start, bytes), owners) };
}

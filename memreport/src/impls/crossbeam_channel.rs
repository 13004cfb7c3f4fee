//! Channels of `crossbeam-channel`. *Lower bounds*, as std's, which were made of them: the block that all ends share, and those that it
//! leads to, seen with the tracker alone. What waits in a channel is not seen, and of a long unbounded one, only the first and the
//! last block.
#![expect(unsafe_code, reason = "vouches for what an end of a channel consists of")]

use crossbeam_channel::{Receiver, Sender, never};

use super::channel::add_own;
use crate::allocator::words::words_of;
use crate::{MallocSizeOf, Ops};

/// Counted by whichever end comes first.
impl<T> MallocSizeOf for Sender<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: an end is a number and the pointer to the block that all ends share.
        unsafe {
            ops.shared_blocks_behind_words(&words_of(self), |words| add_own::<T>(ops, words));
        }
    }
}

/// Counted by whichever end comes first. Where nothing ever comes, nothing is owned.
impl<T> MallocSizeOf for Receiver<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if self.same_channel(&never()) {
            return;
        }
        // SAFETY: any other end is a number and the pointer to the block that all ends share.
        unsafe {
            ops.shared_blocks_behind_words(&words_of(self), |words| add_own::<T>(ops, words));
        }
    }
}

//! Measures ends of channels of `crossbeam-channel`. *Lower bounds*, with the tracker alone.
//!
//! Counted, like std's channels, are the block that all ends share and the blocks that it points
//! to: of a long unbounded channel the first and the last. Queued messages are not measured.
#![expect(unsafe_code, reason = "vouches for what an end of a channel consists of")]

use crossbeam_channel::{Receiver, Sender, never};

use super::channel::add_own;
use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

/// The first end that a collection visits counts the block.
impl<T> MallocSizeOf for Sender<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: an end is a number and the pointer to the block that all ends share.
        unsafe {
            ops.shared_blocks_behind_words(&words_of(self), |words| add_own::<T>(ops, words));
        }
    }
}

/// The first end that a collection visits counts the block. A channel that never delivers owns
/// nothing.
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

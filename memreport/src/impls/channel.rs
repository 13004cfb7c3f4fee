//! Measures ends of channels. *Lower bounds*, with the tracker alone.
//!
//! Counted are the block that all ends share, and the blocks that it points to: of a long unbounded
//! channel the first and the last. Queued messages are not measured.
#![expect(unsafe_code, reason = "vouches for what an end of a channel consists of")]

use std::sync::mpsc::{Receiver, Sender, SyncSender};

use crate::tracker::words::{Words, words_of};
use crate::{MallocSizeOf, Ops};

/// A copy of a message slot, with its state.
type Slot<T> = (usize, T);

/// A copy of a block of an unbounded channel, with a pointer to the next.
type Block<T> = (usize, [Slot<T>; 31]);

macro_rules! ends {
    ($($end:ident)*) => {$(
        /// The first end that a collection visits counts the block.
        impl<T> MallocSizeOf for $end<T> {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                // SAFETY: an end is a number and the pointer to the block that all ends share.
                unsafe {
                    ops.shared_blocks_behind_words(&words_of(self), |words| add_own::<T>(ops, words));
                }
            }
        }
    )*};
}

ends!(Sender SyncSender Receiver);

/// Counts the blocks of a channel that consists of these words.
pub(super) fn add_own<T>(ops: &Ops<'_>, words: Words<'_>) {
    // A bounded channel has a boxed slice of slots: a pointer, followed by their number.
    for (start, slots) in words.clone().zip(words.clone().skip(1)) {
        let bytes = slots.saturating_mul(size_of::<Slot<T>>());
        ops.block_by_words([start], |offset, requested| offset == 0 && requested == bytes);
    }
    let is_block = |offset, requested| offset == 0 && requested == size_of::<Block<T>>();
    ops.blocks_by_words(words, is_block, 0);
}

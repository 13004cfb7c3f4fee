//! Channels. *Lower bounds*, seen with the tracker alone: the block that all ends share, and those that it leads to. What waits in a
//! channel is not seen, and of a long unbounded one, only the first and the last block.
#![expect(unsafe_code, reason = "vouches for what an end of a channel consists of")]

use std::sync::mpsc::{Receiver, Sender, SyncSender};

use crate::allocator::words::{Words, words_of};
use crate::{MallocSizeOf, Ops};

/// As a place for a message, with its state.
type Slot<T> = (usize, T);

/// As a block of an unbounded channel, with a pointer to the next.
type Block<T> = (usize, [Slot<T>; 31]);

macro_rules! ends {
    ($($end:ident)*) => {$(
        /// Counted by whichever end comes first.
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
    // A bounded one has a boxed slice of slots: a pointer, and behind it their number.
    for (start, slots) in words.clone().zip(words.clone().skip(1)) {
        let bytes = slots.saturating_mul(size_of::<Slot<T>>());
        ops.block_by_words([start], |offset, requested| offset == 0 && requested == bytes);
    }
    let is_block = |offset, requested| offset == 0 && requested == size_of::<Block<T>>();
    ops.blocks_by_words(words, is_block, 0);
}

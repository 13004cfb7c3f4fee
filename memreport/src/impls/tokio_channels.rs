//! Measures ends of channels of `tokio::sync`. *Lower bounds*, with the tracker alone.
//!
//! Counted are the block that all ends share, the first and the last block of a queue, and the ring
//! of a broadcast. Queued messages are not measured.
//!
//! The blocks of a queue are found by the words of the shared block, whose layout is unspecified.
//! Its padding keeps words of former blocks, so that now and then another block of the same size is
//! counted.
#![expect(unsafe_code, reason = "vouches for what an end of a channel consists of")]

use std::sync::Mutex;

use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::tracker::words::{Words, words_of};
use crate::{MallocSizeOf, Ops};

/// A copy of a queue's block: a start, a pointer to the next, ready bits, the former end, and
/// messages.
type Block<T> = ([usize; 4], [T; 32]);

/// A copy of a slot in a broadcast's ring: the remaining receivers, the number, and the message.
type Slot<T> = Mutex<(usize, u64, Option<T>)>;

macro_rules! ends {
    ($($module:ident::$end:ident by $add_own:ident)*) => {$(
        /// The first end that a collection visits counts the block.
        impl<T> MallocSizeOf for $module::$end<T> {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                // SAFETY: such an end is the pointer to the block that all ends share.
                unsafe {
                    ops.shared_blocks_behind_words(&words_of(self), |words| $add_own::<T>(ops, words));
                }
            }
        }
    )*};
}

ends!(
    mpsc::Sender by add_queue
    mpsc::Receiver by add_queue
    mpsc::UnboundedSender by add_queue
    mpsc::UnboundedReceiver by add_queue
    broadcast::Sender by add_ring
);

macro_rules! ends_with_what_is_inside {
    ($($module:ident::$end:ident)*) => {$(
        /// The first end that a collection visits counts the block.
        impl<T> MallocSizeOf for $module::$end<T> {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                let nothing = (core::ptr::null::<u8>(), 0);
                ops.shared_blocks_by_words(words_of(self), nothing, usize::MAX);
            }
        }
    )*};
}

// The message lies in the block itself. A broadcast receiver has its number beside the pointer, and
// adds no more.
ends_with_what_is_inside!(
    oneshot::Sender oneshot::Receiver watch::Sender watch::Receiver broadcast::Receiver
);

/// Counts the blocks of a queue that consists of these words.
fn add_queue<T>(ops: &Ops<'_>, words: Words<'_>) {
    let is_block = |offset, requested| offset == 0 && requested == size_of::<Block<T>>();
    ops.blocks_by_words(words, is_block, 0);
}

/// Counts the ring of a broadcast that consists of these words: a boxed slice, which is a pointer
/// followed by the number of slots.
fn add_ring<T>(ops: &Ops<'_>, words: Words<'_>) {
    for (start, slots) in words.clone().zip(words.skip(1)) {
        let bytes = slots.saturating_mul(size_of::<Slot<T>>());
        ops.block_by_words([start], |offset, requested| offset == 0 && requested == bytes);
    }
}

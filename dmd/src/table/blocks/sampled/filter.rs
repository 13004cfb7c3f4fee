//! A filter of the addresses in the compact table, so that most frees in a profile need no look-up.

use crate::mem::sync::Ordering::Relaxed;
use crate::mem::sync::{AtomicU8, array_of, const_fn};

/// The number of counters. With one block in ten thousand sampled, few frees look further.
const COUNTERS: usize = if cfg!(loom) {
    2
} else if cfg!(miri) {
    // Miri visits all of them at each access to the table.
    64
} else {
    1 << 16
};

/// Blocks start at multiples of 16 bytes, the alignment of `malloc`.
const ALIGN_BITS: u32 = 4;

/// The count of blocks that a counter cannot tell apart from more. It stays there.
const FULL: u8 = u8::MAX;

/// A counting filter: for each class of addresses, the number of sampled blocks that start there.
///
/// Relaxed suffices everywhere: the thread that frees a block received its address from the thread
/// that allocated it, and with it what that thread stored before.
pub(super) struct Filter([AtomicU8; COUNTERS]);

impl Filter {
    const_fn! {
        pub(super) fn new() -> Self {
            Filter(array_of!(AtomicU8::new(0); COUNTERS))
        }
    }

    /// Adds a block before its address is returned to the program.
    pub(super) fn add(&self, address: usize) {
        let _ = self.counter(address).fetch_update(Relaxed, Relaxed, |count| count.checked_add(1));
    }

    /// Removes a block that was added.
    pub(super) fn remove(&self, address: usize) {
        let without = |count| (count != FULL).then(|| u8::saturating_sub(count, 1));
        let _ = self.counter(address).fetch_update(Relaxed, Relaxed, without);
    }

    /// Returns whether a block at this address may have been added. Returns `true` for every block
    /// that was.
    #[inline(always)]
    pub(super) fn may_hold(&self, address: usize) -> bool {
        self.counter(address).load(Relaxed) != 0
    }

    #[inline(always)]
    fn counter(&self, address: usize) -> &AtomicU8 {
        &self.0[(address >> ALIGN_BITS) % COUNTERS]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_held_from_its_addition_to_its_removal() {
        let sampled = Box::new(Filter::new());
        let (block, other) = (0x7f00_1234_5670, 0x7f00_1234_5680);
        assert!(!sampled.may_hold(block));
        sampled.add(block);
        assert!(sampled.may_hold(block) && !sampled.may_hold(other));
        // A block of the same class.
        let alike = block + (COUNTERS << ALIGN_BITS);
        sampled.add(alike);
        sampled.remove(block);
        assert!(sampled.may_hold(alike));
        sampled.remove(alike);
        assert!(!sampled.may_hold(alike));
    }

    #[test]
    fn a_full_counter_forgets_no_block() {
        let sampled = Box::new(Filter::new());
        (0..300).for_each(|_| sampled.add(64));
        (0..299).for_each(|_| sampled.remove(64));
        assert!(sampled.may_hold(64));
    }
}

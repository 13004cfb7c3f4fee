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

/// A factor of `MurmurHash3` (`fmix64`). The highest bits of its multiples differ also where
/// addresses are multiples of a large power of two, as those of a size class of jemalloc are.
const FACTOR: u64 = 0xff51_afd7_ed55_8ccd;

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
        &self.0[class(address)]
    }
}

/// Returns the class of an address, which is below [`COUNTERS`].
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "few bits are left")]
fn class(address: usize) -> usize {
    ((address as u64).wrapping_mul(FACTOR) >> (u64::BITS - COUNTERS.ilog2())) as usize
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
        let mut others = (1..).map(|distance| block + 16 * distance);
        let alike = others.find(|other| class(*other) == class(block)).expect("classes are few");
        sampled.add(alike);
        sampled.remove(block);
        assert!(sampled.may_hold(alike));
        sampled.remove(alike);
        assert!(!sampled.may_hold(alike));
    }

    #[test]
    #[cfg_attr(miri, ignore = "there are few counters")]
    fn few_other_blocks_are_held_whatever_the_distance_of_the_blocks() {
        for distance in [16, 48, 80, 1 << 10, 3 << 10, 7 << 9, 1 << 14, 5 << 15, 1 << 21] {
            let sampled = Box::new(Filter::new());
            let mut random = 1_usize;
            let mut blocks = std::iter::repeat_with(|| {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                0x7f00_0000_0000 + (random >> 44) * distance
            });
            blocks.by_ref().take(1000).for_each(|block| sampled.add(block));
            let held = blocks.take(10_000).filter(|block| sampled.may_hold(*block)).count();
            // 1,000 of 65,536 classes: 152 of the others by chance.
            assert!(held < 300, "{held} of blocks at multiples of {distance} bytes");
        }
    }

    #[test]
    fn a_full_counter_forgets_no_block() {
        let sampled = Box::new(Filter::new());
        (0..300).for_each(|_| sampled.add(64));
        (0..299).for_each(|_| sampled.remove(64));
        assert!(sampled.may_hold(64));
    }
}

//! A block of the table packed into one word, so that it is read and written atomically.
//!
//! ```text
//! bit 0       live; 0 in a tombstone
//! bit 1       the block starts in the second half of its granule
//! bits 2-3    epoch
//! bits 4-27   site
//! bits 28-47  requested bytes    } or the number of the block's record
//! bits 48-57  slop bytes         }
//! bit 58      sizes and time are in a record; in a tombstone: unsampled, not freed
//! bits 59-63  sampling rate
//! ```
#![expect(clippy::cast_possible_truncation, reason = "fields are masked out of a word")]

use std::num::NonZeroU64;

use super::epoch::Epoch;
use crate::sample::rate::{RATES, SamplingRate};

/// The number of an allocation site: a call stack, a thread, a scope and a reporter. 0 is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SiteId(u32);

impl SiteId {
    pub(crate) const UNKNOWN: SiteId = SiteId(0);

    #[inline]
    pub(crate) fn from_number(number: u32) -> Self {
        SiteId(number)
    }

    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// A live block, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The bytes that the program requested.
    pub(crate) requested: usize,
    /// The bytes that the program may use: `requested` and slop.
    pub(crate) usable: usize,
    /// The stack, thread, scope and reporter of its allocation.
    pub(crate) site: SiteId,
    /// The epoch it was allocated in.
    pub(crate) epoch: Epoch,
    /// The rate it was sampled at.
    pub(crate) rate: SamplingRate,
    /// The time of its allocation, in nanoseconds of the monotonic clock; 0 if times are not kept.
    pub(crate) time: u64,
}

/// A block's word. Invariant: the live bit is set, so it is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedBlock(NonZeroU64);

/// A block without a record that was found by its requested size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SmallBlock {
    pub(crate) usable: usize,
    pub(crate) packed: PackedBlock,
}

/// The mark at the address of a block that is not in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tombstone {
    /// The block is live, and was not sampled.
    Unsampled,
    /// The block was freed.
    Freed,
}

/// The sizes of a block, as its word contains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// In the word itself.
    Inline { requested: usize, usable: usize },
    /// In the record of this number.
    Record(u32),
}

const LIVE: u64 = 1;
const SECOND_HALF: u64 = 1 << 1;
const EPOCH_SHIFT: u32 = 2;
const SITE_SHIFT: u32 = 4;
const REQUESTED_SHIFT: u32 = 28;
const SLOP_SHIFT: u32 = 48;
const HAS_RECORD: u64 = 1 << 58;
const RATE_SHIFT: u32 = 59;

const SITE_BITS: u32 = REQUESTED_SHIFT - SITE_SHIFT;
const REQUESTED_BITS: u32 = SLOP_SHIFT - REQUESTED_SHIFT;
const SLOP_BITS: u32 = 10;

const _: () = assert!(SITE_BITS == 24 && REQUESTED_BITS == 20 && RATES == 1 << (64 - RATE_SHIFT));

/// The number of records that a word can name.
pub(crate) const RECORD_LIMIT: u32 = 1 << (REQUESTED_BITS + SLOP_BITS);

impl PackedBlock {
    /// Packs a block without a time whose sizes fit. Returns `None` if it needs a record.
    #[inline]
    pub(crate) fn small(block: Block, second_half: bool) -> Option<Self> {
        let slop = block.usable.wrapping_sub(block.requested);
        if block.requested >> REQUESTED_BITS != 0 || slop >> SLOP_BITS != 0 || block.time != 0 {
            return None;
        }
        let sizes = (block.requested as u64) << REQUESTED_SHIFT | (slop as u64) << SLOP_SHIFT;
        Some(PackedBlock::new(block, second_half, sizes))
    }

    /// Packs a block whose sizes and time are in a record.
    pub(crate) fn with_record(block: Block, second_half: bool, record: u32) -> Self {
        PackedBlock::new(block, second_half, HAS_RECORD | u64::from(record) << REQUESTED_SHIFT)
    }

    /// Packs a block as [`small`](Self::small) does, with sizes clamped to those that fit. For
    /// tombstones.
    pub(crate) fn clamped(block: Block, second_half: bool) -> Self {
        let requested = block.requested.min((1 << REQUESTED_BITS) - 1);
        let slop = block.usable.saturating_sub(requested).min((1 << SLOP_BITS) - 1);
        let sizes = (requested as u64) << REQUESTED_SHIFT | (slop as u64) << SLOP_SHIFT;
        PackedBlock::new(block, second_half, sizes)
    }

    #[inline]
    fn new(block: Block, second_half: bool, sizes: u64) -> Self {
        let half = if second_half { SECOND_HALF } else { 0 };
        let epoch = u64::from(block.epoch.number()) << EPOCH_SHIFT;
        let site = u64::from(block.site.number()) << SITE_SHIFT;
        let rate = u64::from(block.rate.number() & 31) << RATE_SHIFT;
        PackedBlock(NonZeroU64::MIN | (half | epoch | site | sizes | rate))
    }

    /// Returns the live block of a word of the table.
    #[inline]
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        if word & LIVE == 0 { None } else { NonZeroU64::new(word).map(PackedBlock) }
    }

    /// Returns the tombstone of a word of the table, with the clamped block that it marks.
    pub(crate) fn tombstone(word: u64) -> Option<(Self, Tombstone)> {
        let packed = if word & LIVE == 0 { PackedBlock::from_word(word | LIVE) } else { None };
        // 0 is no tombstone.
        let packed = packed.filter(|_| word != 0)?;
        let has_record = word & HAS_RECORD != 0;
        let tombstone = if has_record { Tombstone::Unsampled } else { Tombstone::Freed };
        Some((PackedBlock(NonZeroU64::MIN | (packed.word() & !HAS_RECORD)), tombstone))
    }

    /// Returns the word of a tombstone for this block, which has no record.
    pub(crate) fn tombstone_word(self, tombstone: Tombstone) -> u64 {
        let word = self.word() & !LIVE;
        match tombstone {
            // Without the live bit this bit names no record.
            Tombstone::Unsampled => word | HAS_RECORD,
            Tombstone::Freed => word,
        }
    }

    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0.get()
    }

    /// Returns the same block with epoch 0, which is older than all others.
    pub(crate) fn aged(self) -> Self {
        PackedBlock(NonZeroU64::MIN | (self.word() & !(3 << EPOCH_SHIFT)))
    }

    /// Returns the block of a word, if it is live, has this requested size and half of its granule,
    /// and no record.
    #[inline]
    pub(crate) fn match_small(
        word: u64,
        requested: usize,
        second_half: bool,
    ) -> Option<SmallBlock> {
        const COMPARED: u64 =
            LIVE | SECOND_HALF | HAS_RECORD | ((1 << REQUESTED_BITS) - 1) << REQUESTED_SHIFT;
        let half = if second_half { SECOND_HALF } else { 0 };
        let expected = LIVE | half | (requested as u64) << REQUESTED_SHIFT;
        if requested >> REQUESTED_BITS != 0 || word & COMPARED != expected {
            return None;
        }
        let slop = (word >> SLOP_SHIFT) as usize & ((1 << SLOP_BITS) - 1);
        let packed = PackedBlock(NonZeroU64::MIN | word);
        Some(SmallBlock { usable: requested + slop, packed })
    }

    /// Returns the usable bytes of the block of a word, if it is live, and has this half of its
    /// granule and no record.
    #[inline(always)]
    pub(crate) fn small_size(word: u64, second_half: bool) -> Option<usize> {
        let half = if second_half { SECOND_HALF } else { 0 };
        let is_small = word & (LIVE | SECOND_HALF | HAS_RECORD) == LIVE | half;
        let requested = (word >> REQUESTED_SHIFT) as usize & ((1 << REQUESTED_BITS) - 1);
        let slop = (word >> SLOP_SHIFT) as usize & ((1 << SLOP_BITS) - 1);
        is_small.then_some(requested + slop)
    }

    #[inline]
    pub(crate) fn is_second_half(self) -> bool {
        self.word() & SECOND_HALF != 0
    }

    #[inline]
    pub(crate) fn epoch(self) -> Epoch {
        Epoch::from_number((self.word() >> EPOCH_SHIFT) as u8 & 3)
    }

    #[inline]
    pub(crate) fn site(self) -> SiteId {
        SiteId::from_number((self.word() >> SITE_SHIFT) as u32 & ((1 << SITE_BITS) - 1))
    }

    #[inline]
    pub(crate) fn rate(self) -> SamplingRate {
        SamplingRate::from_number((self.word() >> RATE_SHIFT) as u8)
    }

    #[inline]
    pub(crate) fn sizes(self) -> Sizes {
        let requested = (self.word() >> REQUESTED_SHIFT) as usize & ((1 << REQUESTED_BITS) - 1);
        let slop = (self.word() >> SLOP_SHIFT) as usize & ((1 << SLOP_BITS) - 1);
        if self.word() & HAS_RECORD == 0 {
            Sizes::Inline { requested, usable: requested + slop }
        } else {
            Sizes::Record((self.word() >> REQUESTED_SHIFT) as u32 & (RECORD_LIMIT - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(requested: usize, usable: usize) -> Block {
        Block {
            requested,
            usable,
            site: SiteId::from_number(0xab_cdef),
            epoch: Epoch::FIRST.next(),
            rate: SamplingRate::from_number(29),
            time: 0,
        }
    }

    #[test]
    fn small_blocks_and_tombstones_round_trip() {
        for (requested, usable) in [(0, 24), (1, 24), (100, 104), ((1 << 20) - 1, (1 << 20) + 1022)]
        {
            let packed = PackedBlock::small(block(requested, usable), true).expect("it fits");
            let packed = PackedBlock::from_word(packed.word()).expect("it is live");
            assert_eq!(packed.sizes(), Sizes::Inline { requested, usable });
            assert_eq!(packed.site().number(), 0xab_cdef);
            assert_eq!(packed.epoch(), Epoch::FIRST.next());
            assert_eq!(packed.rate(), SamplingRate::from_number(29));
            for tombstone in [Tombstone::Unsampled, Tombstone::Freed] {
                let word = packed.tombstone_word(tombstone);
                assert_eq!(PackedBlock::from_word(word), None);
                assert_eq!(PackedBlock::tombstone(word), Some((packed, tombstone)));
            }
            assert!(packed.is_second_half());
            assert_eq!(
                PackedBlock::match_small(packed.word(), requested, true),
                Some(SmallBlock { usable, packed })
            );
            assert_eq!(PackedBlock::match_small(packed.word(), requested, false), None);
            assert_eq!(PackedBlock::small_size(packed.word(), true), Some(usable));
            assert_eq!(PackedBlock::small_size(packed.word(), false), None);
            let freed = packed.tombstone_word(Tombstone::Freed);
            assert_eq!(PackedBlock::small_size(freed, true), None);
            assert_eq!(PackedBlock::match_small(packed.word(), requested ^ 1, true), None);
            assert_eq!(PackedBlock::match_small(packed.word(), requested | 1 << 36, true), None);
            assert_eq!(
                PackedBlock::match_small(packed.tombstone_word(Tombstone::Freed), requested, true),
                None
            );
            assert_eq!(packed.aged().epoch(), Epoch::from_number(0));
            assert_eq!(packed.aged().sizes(), packed.sizes());
        }
    }

    #[test]
    fn sizes_that_do_not_fit_need_a_record() {
        assert_eq!(PackedBlock::small(block(1 << 20, 1 << 20), false), None);
        assert_eq!(PackedBlock::small(block(0, 1024), false), None);
        assert_eq!(PackedBlock::small(Block { time: 1, ..block(100, 104) }, false), None);
        let packed = PackedBlock::with_record(block(1 << 30, 1 << 30), false, RECORD_LIMIT - 1);
        assert_eq!(packed.sizes(), Sizes::Record(RECORD_LIMIT - 1));
        assert_eq!(PackedBlock::match_small(packed.word(), (1 << 20) - 1, false), None);
        assert_eq!(PackedBlock::small_size(packed.word(), false), None);
        assert!(!packed.is_second_half());
    }

    #[test]
    fn sizes_of_tombstones_are_the_largest_that_fit() {
        let most = (1 << 20) - 1;
        for (requested, usable, expected) in [
            (100, 104, (100, 104)),
            (100, 2000, (100, 1123)),
            (1 << 30, 1 << 30, (most, most + 1023)),
            (most, most, (most, most)),
        ] {
            let packed = PackedBlock::clamped(block(requested, usable), false);
            let (requested, usable) = expected;
            assert_eq!(packed.sizes(), Sizes::Inline { requested, usable });
            assert_eq!(packed.site().number(), 0xab_cdef);
        }
    }

    #[test]
    fn epochs_cycle_and_skip_zero() {
        let first = Epoch::FIRST;
        assert_eq!(first.next().next().next(), first);
        assert!([first, first.next(), first.next().next()].iter().all(|epoch| epoch.number() != 0));
    }
}

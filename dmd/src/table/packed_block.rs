//! A block of the table packed into one word, so that it is read and written atomically.
//!
//! ```text
//! bit 0       live; 0 in a tombstone
//! bit 1       the block starts in the second half of its granule
//! bit 2       sizes and time are in a record; in a tombstone: unsampled, not freed
//! bits 3-4    epoch
//! bits 5-28   site
//! bits 29-33  sampling rate
//! bits 34-43  slop bytes         } or the number of the block's record
//! bits 44-63  usable bytes       }
//! ```
//!
//! The usable bytes are at the top, since every free reads them.
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
const HAS_RECORD: u64 = 1 << 2;
const EPOCH_SHIFT: u32 = 3;
const SITE_SHIFT: u32 = 5;
const RATE_SHIFT: u32 = 29;
const SLOP_SHIFT: u32 = 34;
const USABLE_SHIFT: u32 = 44;

const SITE_BITS: u32 = RATE_SHIFT - SITE_SHIFT;
const SLOP_BITS: u32 = USABLE_SHIFT - SLOP_SHIFT;
const USABLE_BITS: u32 = u64::BITS - USABLE_SHIFT;

const _: () = assert!(SITE_BITS == 24 && RATES == 1 << (SLOP_SHIFT - RATE_SHIFT));

/// The number of records that a word can name.
pub(crate) const RECORD_LIMIT: u32 = 1 << (USABLE_BITS + SLOP_BITS);

/// Returns the sizes of a block in their bits. Returns `None` if they do not fit.
#[inline(always)]
fn pack_sizes(requested: usize, usable: usize) -> Option<u64> {
    let slop = usable.wrapping_sub(requested);
    let fits = usable >> USABLE_BITS == 0 && slop >> SLOP_BITS == 0;
    fits.then_some((usable as u64) << USABLE_SHIFT | (slop as u64) << SLOP_SHIFT)
}

impl PackedBlock {
    /// Packs a block without a time whose sizes fit. Returns `None` if it needs a record.
    #[inline]
    pub(crate) fn small(block: Block, second_half: bool) -> Option<Self> {
        if block.time != 0 {
            return None;
        }
        let sizes = pack_sizes(block.requested, block.usable)?;
        Some(PackedBlock::new(block, second_half, sizes))
    }

    /// Returns the word of blocks of this site and epoch, which are not sampled, without their
    /// sizes and their half.
    #[inline]
    pub(crate) fn without_sizes(site: SiteId, epoch: Epoch) -> u64 {
        let rate = SamplingRate::EVERY;
        let block = Block { requested: 0, usable: 0, site, epoch, rate, time: 0 };
        PackedBlock::new(block, false, 0).word()
    }

    /// Adds the half and the sizes to a word that [`without_sizes`](Self::without_sizes) has
    /// returned. Returns `None` if the slop does not fit; the caller ensures that `usable` does.
    #[inline(always)]
    pub(crate) fn with_sizes(
        word: u64,
        second_half: bool,
        requested: usize,
        usable: usize,
    ) -> Option<u64> {
        let half = if second_half { SECOND_HALF } else { 0 };
        let slop = usable.wrapping_sub(requested);
        let sizes = (usable as u64) << USABLE_SHIFT | (slop as u64) << SLOP_SHIFT;
        PackedBlock::has_inline_sizes(requested, usable).then_some(word | half | sizes)
    }

    /// Returns whether [`with_sizes`](Self::with_sizes) completes a word with these sizes.
    #[inline(always)]
    pub(crate) fn has_inline_sizes(requested: usize, usable: usize) -> bool {
        usable.wrapping_sub(requested) >> SLOP_BITS == 0
    }

    /// Packs a block whose sizes and time are in a record.
    pub(crate) fn with_record(block: Block, second_half: bool, record: u32) -> Self {
        PackedBlock::new(block, second_half, HAS_RECORD | u64::from(record) << SLOP_SHIFT)
    }

    /// Packs a block as [`small`](Self::small) does, with sizes clamped to those that fit. For
    /// tombstones.
    pub(crate) fn clamped(block: Block, second_half: bool) -> Self {
        let most = (1 << USABLE_BITS) - 1;
        let requested = block.requested.min(most);
        let slop = block.usable.saturating_sub(requested).min((1 << SLOP_BITS) - 1);
        let sizes = pack_sizes(requested, (requested + slop).min(most)).unwrap_or(0);
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
    #[inline(always)]
    pub(crate) fn match_small(
        word: u64,
        requested: usize,
        second_half: bool,
    ) -> Option<SmallBlock> {
        let usable = PackedBlock::small_size(word, second_half)?;
        let slop = (word >> SLOP_SHIFT) as usize & ((1 << SLOP_BITS) - 1);
        let packed = PackedBlock(NonZeroU64::MIN | word);
        (usable.wrapping_sub(slop) == requested).then_some(SmallBlock { usable, packed })
    }

    /// Returns the usable bytes of the block of a word, if it is live, and has this half of its
    /// granule and no record.
    #[inline(always)]
    pub(crate) fn small_size(word: u64, second_half: bool) -> Option<usize> {
        let half = if second_half { SECOND_HALF } else { 0 };
        if (word ^ half) & (LIVE | SECOND_HALF | HAS_RECORD) != LIVE {
            return None;
        }
        Some((word >> USABLE_SHIFT) as usize)
    }

    /// Returns the usable bytes, unless they are in a record.
    #[inline]
    pub(crate) fn inline_usable(self) -> Option<usize> {
        PackedBlock::small_size(self.word(), self.is_second_half())
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
        SamplingRate::from_number((self.word() >> RATE_SHIFT) as u8 & 31)
    }

    #[inline]
    pub(crate) fn sizes(self) -> Sizes {
        if self.word() & HAS_RECORD == 0 {
            let usable = (self.word() >> USABLE_SHIFT) as usize;
            let slop = (self.word() >> SLOP_SHIFT) as usize & ((1 << SLOP_BITS) - 1);
            Sizes::Inline { requested: usable.wrapping_sub(slop), usable }
        } else {
            Sizes::Record((self.word() >> SLOP_SHIFT) as u32 & (RECORD_LIMIT - 1))
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
        let most = (1 << 20) - 1;
        for (requested, usable) in [(0, 24), (1, 24), (100, 104), (most - 1023, most), (most, most)]
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
    fn a_word_without_sizes_is_completed() {
        let block = Block { rate: SamplingRate::EVERY, ..block(100, 104) };
        let word = PackedBlock::without_sizes(block.site, block.epoch);
        for half in [false, true] {
            let completed = PackedBlock::with_sizes(word, half, 100, 104);
            assert_eq!(completed, PackedBlock::small(block, half).map(PackedBlock::word));
            assert!(completed.is_some());
            assert_eq!(PackedBlock::with_sizes(word, half, 0, 1024), None);
            assert_eq!(PackedBlock::with_sizes(word, half, 25, 24), None);
        }
    }

    #[test]
    fn sizes_that_do_not_fit_need_a_record() {
        assert_eq!(PackedBlock::small(block(1 << 20, 1 << 20), false), None);
        assert_eq!(PackedBlock::small(block((1 << 20) - 1, 1 << 20), false), None);
        assert_eq!(PackedBlock::small(block(0, 1024), false), None);
        // No block is smaller than its request.
        assert_eq!(PackedBlock::small(block(25, 24), false), None);
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
            (1 << 30, 1 << 30, (most, most)),
            (most - 1, 1 << 20, (most - 1, most)),
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

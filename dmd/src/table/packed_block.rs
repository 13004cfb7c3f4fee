//! What the table holds for a block: one word, so that it is written and read whole.
//!
//! ```text
//! bit 0       live
//! bit 1       the block starts in the second half of its granule
//! bits 2-3    epoch: the generation it was born in
//! bits 4-27   site
//! bits 28-47  requested bytes    } or, of a block with a record, its number
//! bits 48-57  slop bytes         }
//! bit 58      the sizes stand in a record, and when the block was made
//! bits 59-63  rate: that of the sample it is in
//! ```
#![expect(clippy::cast_possible_truncation, reason = "fields are masked out of a word")]

use std::num::NonZeroU64;

use super::epoch::Epoch;
use crate::sample::rate::{RATES, SamplingRate};

/// The number of a site, which stands for where a block was allocated, on which thread, and in whose name; 0 is one that
/// nothing is known of.
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

/// What is known of a live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The bytes that were asked for.
    pub(crate) requested: usize,
    /// The bytes that the allocator gave.
    pub(crate) usable: usize,
    /// Where it was allocated, and by whom.
    pub(crate) site: SiteId,
    /// The generation it was born in.
    pub(crate) epoch: Epoch,
    /// The rate of the sample that it is in.
    pub(crate) rate: SamplingRate,
    /// When it was made, in nanoseconds of the monotonic clock; 0 where times are not kept.
    pub(crate) time: u64,
}

/// A block's word. Never zero, since the live bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedBlock(NonZeroU64);

/// What is known of a block that is not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tombstone {
    /// It lives, and is not in the sample.
    Unsampled,
    /// It was given back.
    Freed,
}

/// The sizes of a block, as its word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    Here {
        requested: usize,
        usable: usize,
    },
    /// In the record of this number.
    Record(u32),
}

const LIVE: u64 = 1;
const SECOND_HALF: u64 = 1 << 1;
const EPOCH_AT: u32 = 2;
const SITE: u32 = 4;
const REQUESTED: u32 = 28;
const SLOP: u32 = 48;
const HAS_RECORD: u64 = 1 << 58;
const RATE: u32 = 59;

const SITE_BITS: u32 = REQUESTED - SITE;
const REQUESTED_BITS: u32 = SLOP - REQUESTED;
const SLOP_BITS: u32 = 10;

const _: () = assert!(SITE_BITS == 24 && REQUESTED_BITS == 20 && RATES == 1 << (64 - RATE));

/// The number of records that a word can name.
pub(crate) const RECORD_LIMIT: u32 = 1 << (REQUESTED_BITS + SLOP_BITS);

impl PackedBlock {
    /// The word of a block whose sizes fit in, and which has no time; `None` of one that needs a record.
    #[inline]
    pub(crate) fn small(block: Block, second_half: bool) -> Option<Self> {
        let slop = block.usable.wrapping_sub(block.requested);
        if block.requested >> REQUESTED_BITS != 0 || slop >> SLOP_BITS != 0 || block.time != 0 {
            return None;
        }
        let sizes = (block.requested as u64) << REQUESTED | (slop as u64) << SLOP;
        Some(PackedBlock::new(block, second_half, sizes))
    }

    /// The word of a block with a record.
    pub(crate) fn with_record(block: Block, second_half: bool, record: u32) -> Self {
        PackedBlock::new(block, second_half, HAS_RECORD | u64::from(record) << REQUESTED)
    }

    /// As [`small`](Self::small), of as much of the block as fits in.
    pub(crate) fn shortened(block: Block, second_half: bool) -> Self {
        let requested = block.requested.min((1 << REQUESTED_BITS) - 1);
        let slop = block.usable.saturating_sub(requested).min((1 << SLOP_BITS) - 1);
        let sizes = (requested as u64) << REQUESTED | (slop as u64) << SLOP;
        PackedBlock::new(block, second_half, sizes)
    }

    #[inline]
    fn new(block: Block, second_half: bool, sizes: u64) -> Self {
        let half = if second_half { SECOND_HALF } else { 0 };
        let epoch = u64::from(block.epoch.number()) << EPOCH_AT;
        let site = u64::from(block.site.number()) << SITE;
        let rate = u64::from(block.rate.number() & 31) << RATE;
        PackedBlock(NonZeroU64::MIN | (half | epoch | site | sizes | rate))
    }

    #[inline]
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        if word & LIVE == 0 { None } else { NonZeroU64::new(word).map(PackedBlock) }
    }

    /// What is left in a word where no block is entered: as much of the block that lived there as fits in, and whether it was
    /// given back.
    pub(crate) fn trace(word: u64) -> Option<(Self, Tombstone)> {
        let packed = if word & LIVE == 0 { PackedBlock::from_word(word | LIVE) } else { None };
        // Of 0, which says nothing.
        let packed = packed.filter(|_| word != 0)?;
        let has_record = word & HAS_RECORD != 0;
        let trace = if has_record { Tombstone::Unsampled } else { Tombstone::Freed };
        Some((PackedBlock(NonZeroU64::MIN | (packed.word() & !HAS_RECORD)), trace))
    }

    /// The word that [`trace`](Self::trace) reads; of an packed without a record.
    pub(crate) fn trace_word(self, trace: Tombstone) -> u64 {
        let word = self.word() & !LIVE;
        match trace {
            // No word of a block that does not live names a record.
            Tombstone::Unsampled => word | HAS_RECORD,
            Tombstone::Freed => word,
        }
    }

    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0.get()
    }

    /// The same block, so old that its epoch no longer tells it from any other.
    pub(crate) fn aged(self) -> Self {
        PackedBlock(NonZeroU64::MIN | (self.word() & !(3 << EPOCH_AT)))
    }

    /// The packed of a live block that was made with this size, and what of it can be used, if that is what the word says by itself.
    #[inline]
    pub(crate) fn whole(word: u64, requested: usize, second_half: bool) -> Option<(usize, Self)> {
        const SAID: u64 =
            LIVE | SECOND_HALF | HAS_RECORD | ((1 << REQUESTED_BITS) - 1) << REQUESTED;
        let half = if second_half { SECOND_HALF } else { 0 };
        let expected = LIVE | half | (requested as u64) << REQUESTED;
        if requested >> REQUESTED_BITS != 0 || word & SAID != expected {
            return None;
        }
        let slop = (word >> SLOP) as usize & ((1 << SLOP_BITS) - 1);
        Some((requested + slop, PackedBlock(NonZeroU64::MIN | word)))
    }

    #[inline]
    pub(crate) fn is_second_half(self) -> bool {
        self.word() & SECOND_HALF != 0
    }

    #[inline]
    pub(crate) fn epoch(self) -> Epoch {
        Epoch::from_number((self.word() >> EPOCH_AT) as u8 & 3)
    }

    #[inline]
    pub(crate) fn site(self) -> SiteId {
        SiteId::from_number((self.word() >> SITE) as u32 & ((1 << SITE_BITS) - 1))
    }

    #[inline]
    pub(crate) fn rate(self) -> SamplingRate {
        SamplingRate::from_number((self.word() >> RATE) as u8)
    }

    #[inline]
    pub(crate) fn sizes(self) -> Sizes {
        let requested = (self.word() >> REQUESTED) as usize & ((1 << REQUESTED_BITS) - 1);
        let slop = (self.word() >> SLOP) as usize & ((1 << SLOP_BITS) - 1);
        if self.word() & HAS_RECORD == 0 {
            Sizes::Here { requested, usable: requested + slop }
        } else {
            Sizes::Record((self.word() >> REQUESTED) as u32 & (RECORD_LIMIT - 1))
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
    fn a_small_block_comes_back_as_it_went_in() {
        for (requested, usable) in [(0, 24), (1, 24), (100, 104), ((1 << 20) - 1, (1 << 20) + 1022)]
        {
            let packed = PackedBlock::small(block(requested, usable), true).expect("it fits");
            let packed = PackedBlock::from_word(packed.word()).expect("it is live");
            assert_eq!(packed.sizes(), Sizes::Here { requested, usable });
            assert_eq!(packed.site().number(), 0xab_cdef);
            assert_eq!(packed.epoch(), Epoch::FIRST.next());
            assert_eq!(packed.rate(), SamplingRate::from_number(29));
            for trace in [Tombstone::Unsampled, Tombstone::Freed] {
                let word = packed.trace_word(trace);
                assert_eq!(PackedBlock::from_word(word), None);
                assert_eq!(PackedBlock::trace(word), Some((packed, trace)));
            }
            assert!(packed.is_second_half());
            assert_eq!(PackedBlock::whole(packed.word(), requested, true), Some((usable, packed)));
            assert_eq!(PackedBlock::whole(packed.word(), requested, false), None);
            assert_eq!(PackedBlock::whole(packed.word(), requested ^ 1, true), None);
            assert_eq!(PackedBlock::whole(packed.word(), requested | 1 << 36, true), None);
            assert_eq!(
                PackedBlock::whole(packed.trace_word(Tombstone::Freed), requested, true),
                None
            );
            assert_eq!(packed.aged().epoch(), Epoch::from_number(0));
            assert_eq!(packed.aged().sizes(), packed.sizes());
        }
    }

    #[test]
    fn what_does_not_fit_needs_a_record() {
        assert_eq!(PackedBlock::small(block(1 << 20, 1 << 20), false), None);
        assert_eq!(PackedBlock::small(block(0, 1024), false), None);
        assert_eq!(PackedBlock::small(Block { time: 1, ..block(100, 104) }, false), None);
        let packed = PackedBlock::with_record(block(1 << 30, 1 << 30), false, RECORD_LIMIT - 1);
        assert_eq!(packed.sizes(), Sizes::Record(RECORD_LIMIT - 1));
        assert_eq!(PackedBlock::whole(packed.word(), (1 << 20) - 1, false), None);
        assert!(!packed.is_second_half());
    }

    #[test]
    fn generations_take_turns_and_never_fall_on_old() {
        let first = Epoch::FIRST;
        assert_eq!(first.next().next().next(), first);
        assert!([first, first.next(), first.next().next()].iter().all(|epoch| epoch.number() != 0));
    }
}

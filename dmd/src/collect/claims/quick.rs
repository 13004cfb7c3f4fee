//! Claims of blocks by the copy of the table alone: most blocks of a batch, in one loop.

use memreport::__private::{
    AtBegin, Claimant, CountedBlocks, ExpectedBlock, ExpectedBlocks, ExpectedSizes, QuickAnswer,
};

use super::ClaimBuffer;
use super::claimants::{self, Claimants};
use super::packed::{ClaimantBits, Region, ShortClaim};
use super::starts::{StartsOfRegion, UNIT, within};
use crate::mem::sys;

/// The blocks of a region whose starts are multiples of 16, for quick questions.
#[derive(Clone, Copy, Debug)]
struct QuickStarts<'s> {
    codes: &'s [u8; Region::BYTES / UNIT],
    /// The first address of the region.
    first: usize,
    /// To be added to a code's units, for usable bytes. Sums wrap around.
    rest: usize,
}

impl<'s> QuickStarts<'s> {
    /// Returns the blocks of a region, if starts are multiples of 16.
    #[inline]
    fn of(starts: StartsOfRegion<'s>, region: Region) -> Option<Self> {
        let codes = starts.bytes.try_into().ok()?;
        let rest = starts.codes.rest.wrapping_sub(UNIT);
        Some(QuickStarts { codes, first: region.first(), rest })
    }

    /// Returns the answer for an expected block, if it is in the region, and that follows from the
    /// block that started at its address.
    #[inline(always)]
    fn answer(
        self,
        start: usize,
        expected: &ExpectedBlocks<'_>,
        block: &ExpectedBlock,
        has_gaps: bool,
    ) -> Option<QuickAnswer> {
        // The bits of an address in which all starts of the region are equal.
        const EQUAL: usize = !(Region::BYTES - UNIT);
        if (start ^ self.first) & EQUAL != 0 {
            return None;
        }
        let code = self.codes[within(start) / UNIT];
        let usable = (usize::from(code) * UNIT).wrapping_add(self.rest);
        expected.quick_answer(block, (code, usable), has_gaps)
    }
}

/// The claimant of the block before, which is mostly the next one's too.
struct LastClaimant {
    /// The address of its field.
    field: usize,
    bits: ClaimantBits,
}

impl LastClaimant {
    const NONE: Self = LastClaimant { field: usize::MAX, bits: ClaimantBits::ZERO };

    /// Returns the bits of claims of this block, if there are such bits.
    #[inline(always)]
    fn bits(
        &mut self,
        claimants: &Claimants,
        reporter: u32,
        block: &ExpectedBlock,
    ) -> Option<ClaimantBits> {
        let claimant = Claimant { reporter, field: block.field.get() };
        let field = claimants::address(claimant.field);
        if field != self.field {
            let bits = claimants.id(claimant).and_then(ClaimantBits::of)?;
            *self = LastClaimant { field, bits };
        }
        Some(self.bits)
    }
}

/// A block whose size does not follow from the copy of the table.
enum OtherBlock {
    /// Its claim in one word, and its usable bytes.
    Short(ShortClaim, usize),
    /// The table had no block there when the collection began: these bytes are computed.
    Missing(usize),
    /// It needs the slow way.
    Slow,
}

impl ClaimBuffer {
    /// Counts blocks up to the first one that needs the slow way, and returns how many. Each is
    /// claimed in one word; or the table has gaps, and it was not there. With `HAS_GAPS`, a block
    /// that is not in the copy is from before tracking, if its size tells.
    #[inline(always)]
    pub(super) fn claim_quickly<const HAS_GAPS: bool>(
        &self,
        expected: &ExpectedBlocks<'_>,
        blocks: &[ExpectedBlock],
        reporter: u32,
        counted: &mut CountedBlocks,
    ) -> usize {
        let (region, places) = self.packed.free_places(blocks.len());
        let starts = self.starts.of(region);
        let quick = starts.and_then(|starts| QuickStarts::of(starts, region));
        let mut last = LastClaimant::NONE;
        let (mut done, mut claims, mut bytes_of_claims) = (0, 0, 0);
        for block in blocks {
            let Some(place) = places.get(claims) else { break };
            let start = sys::untagged(block.start.get().addr());
            let answer = quick.and_then(|quick| quick.answer(start, expected, block, HAS_GAPS));
            let Some(bits) = last.bits(&self.claimants, reporter, block) else { break };
            let (short, QuickAnswer { is_claim, bytes }) = match answer {
                Some(answer) => {
                    (ShortClaim::of_small(start, block.size.get(), answer.bytes, bits), answer)
                }
                None => match self.other_block(start, (region, starts), (expected, block), bits) {
                    OtherBlock::Short(short, bytes) => {
                        (short, QuickAnswer { is_claim: true, bytes })
                    }
                    OtherBlock::Missing(bytes) => {
                        counted.computed += bytes;
                        done += 1;
                        continue;
                    }
                    OtherBlock::Slow => break,
                },
            };
            // What is stored for a block that is not claimed is overwritten.
            short.store(place);
            (done, claims) = (done + 1, claims + usize::from(is_claim));
            bytes_of_claims += if is_claim { bytes } else { 0 };
            counted.computed += if is_claim { 0 } else { bytes };
        }
        self.packed.take_places(claims);
        counted.blocks += claims;
        counted.bytes += bytes_of_claims;
        done
    }

    /// Counts blocks as [`claim_quickly`](Self::claim_quickly) does, where the table has gaps: most
    /// have reported sizes.
    #[inline(always)]
    pub(super) fn claim_with_gaps(
        &self,
        expected: &ExpectedBlocks<'_>,
        blocks: &[ExpectedBlock],
        reporter: u32,
        counted: &mut CountedBlocks,
    ) -> usize {
        let mut done = 0;
        loop {
            let reported = self.claim_reported(&blocks[done..], reporter, counted);
            let rest = &blocks[done + reported..];
            let others = rest.iter().take_while(|block| block.reported().is_none()).count();
            let quick = self.claim_quickly::<true>(expected, &rest[..others], reporter, counted);
            done += reported + quick;
            if quick < others || reported + quick == 0 {
                return done;
            }
        }
    }

    /// Claims blocks up to the first one whose size is not reported, or does not fit into a word,
    /// and returns how many.
    #[inline(always)]
    fn claim_reported(
        &self,
        blocks: &[ExpectedBlock],
        reporter: u32,
        counted: &mut CountedBlocks,
    ) -> usize {
        let (region, places) = self.packed.free_places(blocks.len());
        let mut last = LastClaimant::NONE;
        let (mut done, mut bytes) = (0, 0);
        for (block, place) in blocks.iter().zip(places) {
            let Some(usable) = block.reported() else { break };
            let start = sys::untagged(block.start.get().addr());
            let Some(bits) = last.bits(&self.claimants, reporter, block) else { break };
            let sizes = ExpectedSizes { requested: Some(block.size.get()), usable };
            let short = ShortClaim::new(start, sizes, bits);
            let Some(short) = short.filter(|_| Region::of(start) == region) else { break };
            short.store(place);
            (done, bytes) = (done + 1, bytes + usable);
        }
        self.packed.take_places(done);
        counted.blocks += done;
        counted.bytes += bytes;
        done
    }

    /// Returns how a block is counted whose size does not follow from the copy.
    // Not inlined: the quick way has its values in registers then.
    #[inline(never)]
    fn other_block(
        &self,
        start: usize,
        (region, starts): (Region, Option<StartsOfRegion<'_>>),
        (expected, block): (&ExpectedBlocks<'_>, &ExpectedBlock),
        bits: ClaimantBits,
    ) -> OtherBlock {
        let is_here = Region::of(start) == region;
        if is_here && let Some(sizes) = self.sizes_at(start, starts, expected, block) {
            let short = ShortClaim::new(start, sizes, bits);
            return short.map_or(OtherBlock::Slow, |short| OtherBlock::Short(short, sizes.usable));
        }
        // If blocks are missing in the copy, as sampled ones are, the table is asked.
        let missing = expected.computed_if_missing(block);
        let was_none = || !self.has_every_block && self.starts.at(start) == AtBegin::NoBlock;
        missing.filter(|_| was_none()).map_or(OtherBlock::Slow, OtherBlock::Missing)
    }
}

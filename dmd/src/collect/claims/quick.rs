//! Claims of blocks whose sizes are known or follow from the copy of the table: most blocks of a
//! batch.

use std::cell::Cell;

use memreport::__private::{
    Claimant, ClaimantBits, CountedBlocks, ExpectedBlock, ExpectedBlocks, Region, RegionNumber,
    ShortClaim,
};

use super::ClaimBuffer;
use super::claimants;
use super::starts::{Codes, UNIT, code_at, start_of};

/// Blocks of one region, and how far they are claimed.
struct Run<'s> {
    region: Region,
    number: RegionNumber,
    /// The codes of the region; `None` if nothing is known so.
    codes: Option<&'s Codes>,
    /// Added to `16 * code` for usable bytes: the remainder less 16. Sums wrap around.
    offset: usize,
    reporter: u32,
    /// The address of the last field, and the bits of its claims.
    claimant: (usize, ClaimantBits),
    counted: CountedBlocks,
}

impl Run<'_> {
    /// Creates a run of no region.
    #[inline]
    fn new(reporter: u32) -> Self {
        Run {
            region: Region::NONE,
            number: RegionNumber::ZERO,
            codes: None,
            offset: 0,
            reporter,
            claimant: (usize::MAX, ClaimantBits::ZERO),
            counted: CountedBlocks::default(),
        }
    }
}

impl ClaimBuffer {
    /// Claims blocks up to the first one that needs the slow way, and returns how many: each in one
    /// word.
    #[inline]
    pub(super) fn claim_quickly(
        &self,
        expected: &ExpectedBlocks<'_>,
        blocks: &[ExpectedBlock],
        reporter: u32,
        counted: &mut CountedBlocks,
    ) -> usize {
        let places = self.packed.free_places(blocks.len());
        let mut run = Run::new(reporter);
        let mut done = 0;
        // Each round enters a block's region, or claims the one block at which the loop over the
        // copy has stopped. Then that loop goes on.
        while let (Some(block), Some(place)) = (blocks.get(done), places.get(done)) {
            let region = Region::of(start_of(block));
            if region != run.region {
                if !self.enter(&mut run, region) {
                    break;
                }
            } else if let Some((claim, usable)) = self.short_claim(expected, block, reporter) {
                place.set(claim.in_region(run.number));
                run.counted += CountedBlocks { blocks: 1, bytes: usable };
                done += 1;
            } else {
                break;
            }
            done += self.claim_from_copy(&mut run, expected, &blocks[done..], &places[done..]);
        }
        self.packed.batch().add_stored(done);
        *counted += run.counted;
        done
    }

    /// Goes on in another region. Returns `false` if its claims go the slow way.
    fn enter<'s>(&'s self, run: &mut Run<'s>, region: Region) -> bool {
        let found = self.starts.of(region);
        // Few regions can have a number. A claim of one without blocks is mostly wrong.
        if found.is_none() && self.has_every_block {
            return false;
        }
        let Some(number) = self.number_of(region) else { return false };
        (run.region, run.number) = (region, number);
        run.codes = found.and_then(|found| <&Codes>::try_from(found.known.codes).ok());
        run.offset = found.map_or(0, |found| found.known.sizes.remainder.wrapping_sub(UNIT));
        true
    }

    /// Claims blocks up to the first one whose size is not known and does not follow from the copy,
    /// and returns how many.
    // Not inlined, and without a call: its values are in registers.
    #[inline(never)]
    fn claim_from_copy(
        &self,
        run: &mut Run<'_>,
        expected: &ExpectedBlocks<'_>,
        blocks: &[ExpectedBlock],
        places: &[Cell<u64>],
    ) -> usize {
        let Some(codes) = run.codes else { return 0 };
        let Some(recent) = self.claimants.recent().of_reporter(run.reporter) else { return 0 };
        let (first, number) = (run.region.first(), run.number);
        let (mut field, mut bits) = run.claimant;
        let (mut done, mut bytes) = (0, 0);
        for (block, place) in blocks.iter().zip(places) {
            // Mostly it is the field of the block before.
            if claimants::address(block.field()) != field {
                let Some(found) = recent.bits(block.field()) else { break };
                (field, bits) = (claimants::address(block.field()), found);
            }
            let start = start_of(block);
            let Some(code) = code_at(codes, start.wrapping_sub(first)) else { break };
            let (claim, usable) = if let Some(sizes) = block.known() {
                let Some(claim) = ShortClaim::new(start, sizes, bits) else { break };
                (claim, sizes.usable)
            } else {
                let usable = (usize::from(code) * UNIT).wrapping_add(run.offset);
                let Some(usable) = expected.quick_answer(block, (code, usable)) else { break };
                (ShortClaim::of_small(start, block.size(), usable, bits), usable)
            };
            place.set(claim.in_region(number));
            (done, bytes) = (done + 1, bytes + usable);
        }
        run.claimant = (field, bits);
        run.counted += CountedBlocks { blocks: done, bytes };
        done
    }

    /// Returns the claim of a block that [`claim_from_copy`](Self::claim_from_copy) leaves, and its
    /// usable bytes; `None` if it needs the slow way.
    fn short_claim(
        &self,
        expected: &ExpectedBlocks<'_>,
        block: &ExpectedBlock,
        reporter: u32,
    ) -> Option<(ShortClaim, usize)> {
        let start = start_of(block);
        let sizes = match block.known() {
            Some(sizes) => sizes,
            None => self.sizes_at(start, self.starts.of(Region::of(start)), expected, block)?,
        };
        let claimant = Claimant { reporter, field: block.field() };
        let bits = self.claimants.id(claimant).and_then(|id| ClaimantBits::of(id.0))?;
        Some((ShortClaim::new(start, sizes, bits)?, sizes.usable))
    }
}

//! Claims of blocks whose sizes are known or follow from the copy of the table: most blocks of a
//! batch, in one loop.

use memreport::__private::{Claimant, CountedBlocks, ExpectedBlock, ExpectedBlocks};

use super::ClaimBuffer;
use super::claimants;
use super::packed::{ClaimantBits, Region, ShortClaim};
use super::starts::{Starts, UNIT};
use crate::mem::sys;

/// The blocks of a region whose starts are multiples of 16, for quick questions.
#[derive(Clone, Copy, Debug)]
struct QuickStarts<'s> {
    /// The codes of the region; none if nothing is known so.
    codes: &'s [u8],
    /// The first address of the region.
    first: usize,
    /// To be added to a code's units, for usable bytes. Sums wrap around.
    rest: usize,
}

impl<'s> QuickStarts<'s> {
    /// Returns the blocks of a region.
    #[inline]
    fn of(starts: &'s Starts, region: Region) -> Self {
        let starts = starts.of(region).filter(|starts| starts.bytes.len() == Region::BYTES / UNIT);
        let rest = starts.map_or(0, |starts| starts.codes.rest.wrapping_sub(UNIT));
        QuickStarts {
            codes: starts.map_or(&[], |starts| starts.bytes),
            first: region.first(),
            rest,
        }
    }

    /// Returns the code of the block that started at an address of the region.
    #[inline(always)]
    fn code(self, start: usize) -> Option<u8> {
        // Of an address outside, or of no multiple, the highest bits are set then.
        let index = start.wrapping_sub(self.first).rotate_right(UNIT.trailing_zeros());
        self.codes.get(index).copied()
    }
}

impl ClaimBuffer {
    /// Claims blocks up to the first one that needs the slow way, and returns how many: each in one
    /// word.
    #[inline(always)]
    pub(super) fn claim_quickly(
        &self,
        expected: &ExpectedBlocks<'_>,
        blocks: &[ExpectedBlock],
        reporter: u32,
        counted: &mut CountedBlocks,
    ) -> usize {
        let (region, places) = self.packed.free_places(blocks.len());
        let quick = QuickStarts::of(&self.starts, region);
        let (mut field, mut bits) = (usize::MAX, ClaimantBits::ZERO);
        let (mut done, mut bytes) = (0, 0);
        for (block, place) in blocks.iter().zip(places) {
            let start = sys::untagged(block.start.get().addr());
            // Mostly it is the field of the block before.
            if claimants::address(block.field.get()) != field {
                let claimant = Claimant { reporter, field: block.field.get() };
                let id = self.claimants.id(claimant);
                let Some(found) = id.and_then(ClaimantBits::of) else { break };
                (field, bits) = (claimants::address(claimant.field), found);
            }
            let known = block.known().and_then(|sizes| {
                let short = ShortClaim::new(start, sizes, bits)?;
                (Region::of(start) == region).then_some((short, sizes.usable))
            });
            let from_copy = || {
                let code = quick.code(start)?;
                let usable = (usize::from(code) * UNIT).wrapping_add(quick.rest);
                let usable = expected.quick_answer(block, (code, usable))?;
                Some((ShortClaim::of_small(start, block.size.get(), usable, bits), usable))
            };
            let claim = known.or_else(from_copy);
            let claim = claim.or_else(|| self.short_claim(start, expected, block, bits));
            let Some((short, usable)) = claim else { break };
            short.store(place);
            (done, bytes) = (done + 1, bytes + usable);
        }
        self.packed.take_places(done);
        counted.blocks += done;
        counted.bytes += bytes;
        done
    }

    /// Returns the claim of a block whose size does not follow from the copy alone, and its usable
    /// bytes; `None` if it needs the slow way.
    // Not inlined: the quick way has its values in registers then.
    #[cold]
    #[inline(never)]
    fn short_claim(
        &self,
        start: usize,
        expected: &ExpectedBlocks<'_>,
        block: &ExpectedBlock,
        bits: ClaimantBits,
    ) -> Option<(ShortClaim, usize)> {
        let region = Region::of(start);
        let starts = self.packed.is_in(region).then(|| self.starts.of(region))?;
        let sizes = self.sizes_at(start, starts, expected, block)?;
        Some((ShortClaim::new(start, sizes, bits)?, sizes.usable))
    }
}

//! The blocks that were live when a collection began, as a recorder knows them without a look-up.

use crate::tracker::claim::{AroundBegin, AtBegin};
use crate::tracker::recorder::Recorder;
use crate::tracker::region_blocks::RegionBlocks;
use crate::tracker::short_claim::{Region, untagged};

/// The number of places for regions at hand. Few, since they are on the stack: a collection
/// allocates no block for them.
const AT_HAND: usize = 8;

/// All blocks that were live when a collection began, by region.
pub(crate) struct KnownBlocks<'b> {
    recorder: &'b dyn Recorder,
    /// The regions at hand, by their lowest bits. A free place has a region without blocks.
    at_hand: [RegionBlocks<'b>; AT_HAND],
    /// True if regions are missing there.
    has_others: bool,
}

impl<'b> KnownBlocks<'b> {
    /// Returns the blocks that a recorder knows; `None` if it does not know all.
    pub(crate) fn of(recorder: &'b dyn Recorder) -> Option<Self> {
        if !recorder.knows_all_regions() {
            return None;
        }
        let mut at_hand = [RegionBlocks::none_of(Region::NONE); AT_HAND];
        let mut has_others = false;
        for blocks in (0..).map_while(|index| recorder.nth_region(index)) {
            let place = &mut at_hand[place_of(blocks.region)];
            if place.region == Region::NONE {
                *place = blocks;
            } else {
                has_others = true;
            }
        }
        Some(KnownBlocks { recorder, at_hand, has_others })
    }

    /// Returns the block that started at this address.
    #[inline(always)]
    pub(crate) fn at(&self, address: usize) -> AtBegin {
        let address = untagged(address);
        self.region(address).at(address)
    }

    /// Returns the block that contained this address.
    pub(crate) fn around(&self, address: usize) -> AroundBegin {
        self.recorder.around_begin(address)
    }

    /// Returns an address to prefetch for [`at`](Self::at); any if there is none.
    #[inline(always)]
    pub(crate) fn entry_address(&self, address: usize) -> *const u8 {
        let address = untagged(address);
        self.region(address).code_address(address)
    }

    #[inline(always)]
    fn region(&self, address: usize) -> RegionBlocks<'b> {
        let region = Region::of(address);
        let known = self.at_hand[place_of(region)];
        if known.region == region { known } else { self.other(region) }
    }

    #[cold]
    #[inline(never)]
    fn other(&self, region: Region) -> RegionBlocks<'b> {
        let other = if self.has_others { self.recorder.known_region(region) } else { None };
        other.unwrap_or(RegionBlocks::none_of(region))
    }
}

/// Returns the place of a region among those at hand.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "it is less than eight")]
fn place_of(Region(region): Region) -> usize {
    region as usize % AT_HAND
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::tracker::claim::{Claim, Found};
    use crate::tracker::claimant::Claimant;
    use crate::tracker::recorder::Position;
    use crate::tracker::region_blocks::SizeCodes;

    /// A recorder that knows these regions.
    struct Regions(Vec<(Region, Vec<u8>)>);

    const SIZES: SizeCodes = SizeCodes { align_bits: 4, remainder: 8 };

    impl Recorder for Regions {
        fn claimed(&self, _: Claim, _: Found, _: Claimant) {}

        fn knows_all_regions(&self) -> bool {
            true
        }

        fn nth_region(&self, index: usize) -> Option<RegionBlocks<'_>> {
            let (region, codes) = self.0.get(index)?;
            Some(RegionBlocks { region: *region, sizes: SIZES, codes })
        }

        fn position(&self) -> Position {
            Position::default()
        }

        fn roll_back(&self, _: Position) {}
    }

    #[test]
    fn a_block_is_known_by_its_region_and_its_code() {
        let codes = vec![0, SIZES.code(24), 0, SIZES.code(4056), SIZES.code(32)];
        // They take the same place.
        let (first, other) = (Region(7), Region(7 + 2 * AT_HAND as u64));
        let recorder = Regions(vec![(first, codes), (other, vec![2])]);
        let known = KnownBlocks::of(&recorder).expect("it knows all");
        let (seven, three) = (first.first(), other.first());
        for (address, expected) in [
            (seven, AtBegin::NoBlock),
            (seven + 16, AtBegin::Usable(24)),
            (seven + 24, AtBegin::NoBlock),
            (seven + 48, AtBegin::Usable(4056)),
            (seven + 64, AtBegin::Unknown),
            (seven + 80, AtBegin::NoBlock),
            (three, AtBegin::Usable(24)),
            (three + 16, AtBegin::NoBlock),
            (Region(4).first() + 16, AtBegin::NoBlock),
            (seven + 16, AtBegin::Usable(24)),
        ] {
            assert_eq!(known.at(address), expected, "{address:x}");
        }
        let address = recorder.0[0].1.as_ptr().wrapping_add(3);
        assert_eq!(known.entry_address(seven + 48), address);
    }
}

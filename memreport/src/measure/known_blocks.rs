//! The blocks that were live when a collection began, as a recorder knows them without a look-up.

use core::cell::Cell;
use core::ptr::null;

use crate::tracker::claim::{AroundBegin, AtBegin};
use crate::tracker::recorder::Recorder;
use crate::tracker::region_blocks::RegionBlocks;
use crate::tracker::short_claim::Region;

/// The number of regions at hand: 16 GiB of addresses.
const FIRST: usize = 4;

/// All blocks that were live when a collection began, by region.
pub(crate) struct KnownBlocks<'b> {
    recorder: &'b dyn Recorder,
    /// The first regions: an array, so that a collection allocates no block for them, and a small
    /// one, for small stacks.
    regions: [Option<RegionBlocks<'b>>; FIRST],
    /// The index of the region in which the last address was that had one.
    last: Cell<usize>,
}

impl<'b> KnownBlocks<'b> {
    /// Returns the blocks that a recorder knows; `None` if it does not know all.
    pub(crate) fn of(recorder: &'b dyn Recorder) -> Option<Self> {
        let regions = core::array::from_fn(|index| recorder.known_region(index));
        let is_complete = recorder.knows_all_regions();
        is_complete.then_some(KnownBlocks { recorder, regions, last: Cell::new(0) })
    }

    /// Returns the block that started at this address.
    #[inline(always)]
    pub(crate) fn at(&self, address: usize) -> AtBegin {
        let address = untagged(address);
        self.region(address).map_or(AtBegin::NoBlock, |region| region.at(address))
    }

    /// Returns the block that contained this address.
    pub(crate) fn around(&self, address: usize) -> AroundBegin {
        self.recorder.around_begin(address)
    }

    /// Returns an address to prefetch for [`at`](Self::at); any if there is none.
    #[inline(always)]
    pub(crate) fn entry_address(&self, address: usize) -> *const u8 {
        let address = untagged(address);
        self.region(address).map_or(null(), |region| region.code_address(address))
    }

    #[inline(always)]
    fn region(&self, address: usize) -> Option<RegionBlocks<'b>> {
        let region = Region::of(address);
        let last = self.regions.get(self.last.get()).copied().flatten();
        last.filter(|last| last.region == region).or_else(|| self.find(region))
    }

    #[cold]
    #[inline(never)]
    fn find(&self, region: Region) -> Option<RegionBlocks<'b>> {
        let first = self.regions.iter().copied();
        let others = (FIRST..).map(|index| self.recorder.known_region(index));
        let mut regions = first.chain(others).map_while(|found| found).enumerate();
        let (index, found) = regions.find(|(_, found)| found.region == region)?;
        if index < FIRST {
            self.last.set(index);
        }
        Some(found)
    }
}

/// Returns an address without the tag that the processor ignores.
#[inline(always)]
const fn untagged(address: usize) -> usize {
    if cfg!(target_arch = "aarch64") { address & (usize::MAX >> 8) } else { address }
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

    const SIZES: SizeCodes = SizeCodes { align_bits: 4, rest: 8 };

    impl Recorder for Regions {
        fn claimed(&self, _: Claim, _: Found, _: Claimant) {}

        fn knows_all_regions(&self) -> bool {
            true
        }

        fn known_region(&self, index: usize) -> Option<RegionBlocks<'_>> {
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
        // Others lie between, so that the last one is not at hand.
        let mut regions = vec![(Region(7), codes)];
        regions.extend((10..20).map(|region| (Region(region), Vec::new())));
        regions.push((Region(3), vec![2]));
        let recorder = Regions(regions);
        let known = KnownBlocks::of(&recorder).expect("it knows all");
        let (seven, three) = (Region(7).first(), Region(3).first());
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
        assert!(known.entry_address(16).is_null());
    }
}

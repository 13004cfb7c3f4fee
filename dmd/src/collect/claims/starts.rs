//! A small copy of the table from the beginning of a collection: for each address at which a block
//! may start, a byte with its usable size.
//!
//! A claim of such a block needs no look-up. The copy takes an eighth of the table or less, so more
//! of it stays in the cache.

mod huge_pages;

use memreport::__private::{
    AroundBegin, AtBegin, ExpectedBlock, Region, RegionBlocks, SizeCodes, prefetch,
};

use self::huge_pages::{Huge, LastBytes};
use crate::mem::pages::PageList;
use crate::mem::sys;
use crate::table::blocks::Granule;

/// The most regions with a copy.
const MAX_REGIONS: usize = 64;

/// The unit of usable sizes.
pub(super) const UNIT: usize = 16;

/// The codes of a region whose starts are multiples of 16.
pub(super) type Codes = [u8; Region::BYTES / UNIT];

/// The bytes of a page, as a power of two: more than those of all blocks whose size has a code.
const PAGE_BITS: u32 = 12;

const NO_BLOCK: u8 = SizeCodes::NO_BLOCK;
const OTHER_SIZE: u8 = SizeCodes::OTHER_SIZE;

/// The blocks that were live when a collection began, by region.
#[derive(Debug)]
pub(crate) struct Starts {
    sizes: SizeCodes,
    regions: [Option<RegionStarts>; MAX_REGIONS],
    /// The index of the region that has received the last block.
    last: usize,
    /// The blocks of other sizes and those in two regions, by address.
    others: PageList<OtherBlock>,
    /// True if blocks are missing.
    is_incomplete: bool,
}

/// A block whose size has no code, or that ends in another region.
#[derive(Clone, Copy, Debug)]
struct OtherBlock {
    start: usize,
    end: usize,
}

/// The blocks of one region. Pages without a block are not touched, but for huge ones.
#[derive(Debug)]
struct RegionStarts {
    region: Region,
    bytes: PageList<u8>,
    /// The greatest code of the blocks that start in a page, by page.
    greatest: PageList<u8>,
    last_bytes: LastBytes,
}

/// The blocks of a region, for many questions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartsOfRegion<'s> {
    pub(super) known: RegionBlocks<'s>,
    greatest: &'s [u8],
}

impl Starts {
    pub(crate) fn new(granule: Granule) -> Self {
        let align_bits = granule.align().trailing_zeros();
        let remainder = if granule.bytes() == 2 * UNIT { UNIT / 2 } else { 0 };
        Starts {
            sizes: SizeCodes { align_bits, remainder },
            regions: [const { None }; MAX_REGIONS],
            last: 0,
            others: PageList::new(),
            is_incomplete: false,
        }
    }

    /// Adds a block, after all at lower addresses. If there is no memory for it, the copy becomes
    /// incomplete.
    pub(crate) fn insert(&mut self, start: usize, usable: usize) {
        let region = Region::of(start);
        let is_last = |last: &RegionStarts| last.region == region;
        if !self.regions[self.last].as_ref().is_some_and(is_last) && !self.find_or_add(region) {
            return self.set_incomplete();
        }
        let code = self.sizes.code(usable);
        if let Some(found) = &mut self.regions[self.last] {
            found.set(self.sizes.index(start), page_of(start), code);
        }
        let end = start.saturating_add(usable);
        // In its second region, a block is not near any byte of the copy.
        let is_other = code == OTHER_SIZE || Region::of(end.saturating_sub(1)) != region;
        if is_other && !self.others.push(OtherBlock { start, end }) {
            self.set_incomplete();
        }
    }

    /// Notes that blocks are missing, so that those that are not here are looked up.
    pub(crate) fn set_incomplete(&mut self) {
        self.is_incomplete = true;
    }

    /// Makes a region the last one. Returns `false` if there is no place or no memory for it.
    #[cold]
    fn find_or_add(&mut self, region: Region) -> bool {
        let is_it =
            |slot: &Option<RegionStarts>| slot.as_ref().is_none_or(|found| found.region == region);
        let Some(index) = self.regions.iter().position(is_it) else { return false };
        if self.regions[index].is_none() {
            let bytes = PageList::sparse_zeros(Region::BYTES >> self.sizes.align_bits);
            let greatest = PageList::sparse_zeros(Region::BYTES >> PAGE_BITS);
            let (Some(bytes), Some(greatest)) = (bytes, greatest) else { return false };
            let last_bytes = LastBytes::default();
            self.regions[index] = Some(RegionStarts { region, bytes, greatest, last_bytes });
        }
        self.last = index;
        true
    }

    /// Returns the blocks of a region; `None` if there are none.
    #[inline]
    pub(crate) fn of(&self, region: Region) -> Option<StartsOfRegion<'_>> {
        let mut regions = self.regions.iter().map_while(Option::as_ref);
        let found = regions.find(|found| found.region == region)?;
        Some(StartsOfRegion { known: found.known(self.sizes), greatest: found.greatest.as_slice() })
    }

    /// Prefetches for these blocks.
    #[inline(always)]
    pub(crate) fn prefetch(&self, blocks: &[ExpectedBlock]) {
        let (mut region, mut codes) = (Region::NONE, std::ptr::null::<u8>());
        for block in blocks {
            let start = start_of(block);
            // Mostly all of them are of one region.
            if Region::of(start) != region {
                region = Region::of(start);
                codes =
                    self.of(region).map_or(std::ptr::null(), |found| found.known.codes.as_ptr());
            }
            // Of a region without blocks it is any address, which does no harm.
            prefetch(codes.wrapping_add(self.sizes.index(start)));
        }
    }

    /// Returns whether there may be a block near this address: in its region, or anywhere if blocks
    /// are missing.
    #[inline]
    pub(crate) fn may_be_near(&self, address: usize) -> bool {
        self.is_incomplete || self.of(Region::of(sys::untagged(address))).is_some()
    }

    /// Returns the block that contained this address.
    pub(crate) fn around(&self, address: usize) -> AroundBegin {
        if self.is_incomplete {
            return AroundBegin::Unknown;
        }
        let found = self.of(Region::of(address)).and_then(|starts| starts.nearest(address));
        match found {
            Some((start, AtBegin::Usable(usable))) if address < start + usable => {
                AroundBegin::Block { start, usable }
            }
            // Blocks do not overlap.
            Some((_, AtBegin::Usable(_) | AtBegin::NoBlock)) => AroundBegin::NoBlock,
            Some((_, AtBegin::Unknown)) | None => self.other_around(address),
        }
    }

    /// Returns the block of those of other sizes that contained this address.
    fn other_around(&self, address: usize) -> AroundBegin {
        let others = self.others.as_slice();
        let before = others.partition_point(|other| other.start <= address);
        match before.checked_sub(1).map(|last| &others[last]) {
            Some(&OtherBlock { start, end }) if address < end => {
                AroundBegin::Block { start, usable: end - start }
            }
            _ => AroundBegin::NoBlock,
        }
    }

    /// Returns the address of the byte for a block, for prefetching; any if there is none.
    #[inline]
    pub(crate) fn address_of_byte(&self, start: usize) -> *const u8 {
        self.of(Region::of(start)).map_or(std::ptr::null(), |found| found.known.code_address(start))
    }

    /// Returns whether no block is missing.
    pub(crate) fn is_complete(&self) -> bool {
        !self.is_incomplete
    }

    /// Returns the blocks of one region after the other; `None` after the last one.
    pub(crate) fn nth(&self, index: usize) -> Option<RegionBlocks<'_>> {
        let found = self.regions.get(index)?.as_ref()?;
        Some(found.known(self.sizes))
    }
}

/// Returns the index of an address's page in its region.
#[inline(always)]
fn page_of(address: usize) -> usize {
    (address & Region::WITHIN) >> PAGE_BITS
}

/// Returns the code for a block at this offset in the region; `None` if it is outside, or no
/// multiple of 16.
#[inline(always)]
pub(super) fn code_at(codes: &Codes, offset: usize) -> Option<u8> {
    // The rotation moves the bits of a remainder to the top: the index is out of range then.
    codes.get(offset.rotate_right(UNIT.trailing_zeros())).copied()
}

/// Returns the address of an expected block.
#[inline(always)]
pub(super) fn start_of(block: &ExpectedBlock) -> usize {
    sys::untagged(block.start().addr())
}

impl RegionStarts {
    #[inline]
    fn known(&self, sizes: SizeCodes) -> RegionBlocks<'_> {
        RegionBlocks { region: self.region, sizes, codes: self.bytes.as_slice() }
    }

    /// Sets the code of a block, by its index and its page.
    #[inline]
    fn set(&mut self, index: usize, page: usize, code: u8) {
        let address = self.bytes.as_slice().as_ptr().addr() + index;
        match self.last_bytes.advance(address) {
            Huge::None => {}
            Huge::This => self.bytes.prefer_huge_page(index),
            Huge::Both => {
                self.bytes.prefer_huge_page(index);
                self.bytes.make_huge_page(index.saturating_sub(sys::HUGE_PAGE));
            }
        }
        if let Some(byte) = self.bytes.as_mut_slice().get_mut(index) {
            *byte = code;
        }
        if let Some(greatest) = self.greatest.as_mut_slice().get_mut(page) {
            *greatest = code.max(*greatest);
        }
    }
}

impl<'s> StartsOfRegion<'s> {
    /// Returns the last block of the region that started at this address or before, if it is so
    /// near that its size may be known.
    fn nearest(self, address: usize) -> Option<(usize, AtBegin)> {
        let index = self.known.sizes.index(address);
        let page = page_of(address);
        // Mostly no block of this page and the one before is large, and often there is none.
        let greatest = self.greatest.get(page.saturating_sub(1)..=page)?.iter().max()?;
        let reach = (usize::from(*greatest) * UNIT) >> self.known.sizes.align_bits;
        let first = (index + 1).saturating_sub(reach);
        let found = last_block(self.known.codes.get(first..=index)?)?;
        let back = (index - first - found) << self.known.sizes.align_bits;
        let start = (address >> self.known.sizes.align_bits << self.known.sizes.align_bits) - back;
        Some((start, self.known.sizes.at_begin(self.known.codes[first + found])))
    }
}

/// Returns the index of the last code of a block.
fn last_block(codes: &[u8]) -> Option<usize> {
    const CHUNK: usize = size_of::<u128>();
    // Mostly there is none.
    let is_empty = |chunk: &[u8]| chunk.iter().fold(0, |any, code| any | code) == NO_BLOCK;
    let chunks = codes.rchunks(CHUNK).take_while(|chunk| is_empty(chunk)).count();
    let end = codes.len().saturating_sub(chunks * CHUNK);
    codes[..end].iter().rposition(|code| *code != NO_BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::sys::shortage;

    /// Returns the block that started at an address, as far as that is known.
    fn at(starts: &Starts, address: usize) -> AtBegin {
        let found = starts.of(Region::of(address));
        match found.map_or(AtBegin::NoBlock, |found| found.known.at(address)) {
            AtBegin::NoBlock if !starts.is_complete() => AtBegin::Unknown,
            found => found,
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "the copy of a region is large")]
    fn the_blocks_that_were_inserted_are_there_and_no_others() {
        let eights = Granule::new(16, 8);
        // The usable bytes, and what the copy knows of them.
        let of_16 = [(16, Some(16)), (4048, Some(4048)), (4064, None), (40, None), (0, Some(0))];
        let of_32 = [(24, Some(24)), (4056, Some(4056)), (4072, None), (32, None), (8, Some(8))];
        for (granule, sizes) in [(Granule::OF_32, of_32), (Granule::OF_16, of_16), (eights, of_16)]
        {
            let align = granule.align();
            let mut starts = Starts::new(granule);
            let begins = [align, 1 << 20, Region::BYTES - align, Region::BYTES, 7 * Region::BYTES];
            for (start, (usable, _)) in begins.into_iter().zip(sizes) {
                starts.insert(start, usable);
            }
            for (start, (usable, expected)) in begins.into_iter().zip(sizes) {
                let expected = expected.map_or(AtBegin::Unknown, AtBegin::Usable);
                assert_eq!(at(&starts, start), expected, "{start:x} {usable}");
                for other in [start + align, start + 1, start + align / 2, start + 16 * align] {
                    let is_other = !begins.contains(&other);
                    assert!(!is_other || at(&starts, other) == AtBegin::NoBlock, "{other:x}");
                }
            }
            assert_eq!(at(&starts, 3 * Region::BYTES), AtBegin::NoBlock);
            starts.insert(3 * Region::BYTES, 40_000);
            assert_eq!(at(&starts, 3 * Region::BYTES), AtBegin::Unknown);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "the copy of a region is large")]
    fn a_small_block_in_two_regions_is_around_all_its_bytes() {
        let mut starts = Starts::new(Granule::OF_16);
        let start = 2 * Region::BYTES - 32;
        let blocks = [(start - 16, 16), (start, 64), (start + 80, 16)];
        blocks.iter().for_each(|(start, usable)| starts.insert(*start, *usable));
        for offset in [0, 31, 32, 63] {
            let expected = AroundBegin::Block { start, usable: 64 };
            assert_eq!(starts.around(start + offset), expected, "{offset}");
        }
        assert_eq!(starts.around(start + 64), AroundBegin::NoBlock);
        assert_eq!(at(&starts, start), AtBegin::Usable(64));
    }

    #[test]
    fn the_last_block_of_a_stretch_is_found_wherever_it_is() {
        for length in [0, 1, 15, 16, 17, 255] {
            let mut codes = vec![NO_BLOCK; length];
            assert_eq!(last_block(&codes), None);
            for last in 0..length {
                codes[last] = OTHER_SIZE;
                assert_eq!(last_block(&codes), Some(last), "{length}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "the copy of a region is large")]
    fn the_block_around_an_address_is_found_of_any_size() {
        let mut starts = Starts::new(Granule::OF_32);
        let blocks = [(0x1010, 24), (0x1030, 4056), (0x3000, 5000), (0x9000, 1 << 30)];
        blocks.iter().for_each(|(start, usable)| starts.insert(*start, *usable));
        let at = |start, usable| AroundBegin::Block { start, usable };
        for (address, expected) in [
            (0x1000, AroundBegin::NoBlock),
            (0x1010, at(0x1010, 24)),
            (0x1027, at(0x1010, 24)),
            (0x1028, AroundBegin::NoBlock),
            (0x1030 + 4055, at(0x1030, 4056)),
            (0x1030 + 4056, AroundBegin::NoBlock),
            (0x3000, at(0x3000, 5000)),
            (0x3000 + 4999, at(0x3000, 5000)),
            (0x3000 + 5000, AroundBegin::NoBlock),
            (0x9000 + 5000, at(0x9000, 1 << 30)),
            (0x9000 + (1 << 30), AroundBegin::NoBlock),
            // No block starts in this page or the one before.
            (0x6000, AroundBegin::NoBlock),
        ] {
            assert_eq!(starts.around(address), expected, "{address:x}");
        }
        starts.set_incomplete();
        assert_eq!(starts.around(0x1010), AroundBegin::Unknown);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the copy of a region is large")]
    fn without_a_place_or_memory_nothing_is_known_of_blocks_that_are_not_there() {
        let mut starts = Starts::new(Granule::OF_16);
        assert_eq!(at(&starts, 16), AtBegin::NoBlock);
        shortage::run(|| starts.insert(16, 16));
        assert_eq!(at(&starts, 16), AtBegin::Unknown);
        let mut starts = Starts::new(Granule::OF_16);
        for region in 0..MAX_REGIONS {
            starts.insert(region * Region::BYTES, 16);
        }
        assert_eq!(at(&starts, 16), AtBegin::NoBlock);
        starts.insert(MAX_REGIONS * Region::BYTES, 16);
        assert_eq!(at(&starts, 16), AtBegin::Unknown);
        assert_eq!(at(&starts, (MAX_REGIONS - 1) * Region::BYTES), AtBegin::Usable(16));
    }
}

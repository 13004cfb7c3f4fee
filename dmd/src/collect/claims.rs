//! Claims of reporters during a collection: a buffer while they arrive, then a log sorted by
//! address.
//!
//! Most claims take no look-up. Their sizes come from a copy of the table's or from the allocator,
//! and the pass over all blocks compares them with the block at their address. Where the table has
//! every block, a claim of an address that is not in the copy is looked up, so that the allocator
//! is never asked about an address that is no block's.
//!
//! Reading order: `claimants` (which reporter, through which field), `words` (a claim in two
//! words), `packed` (most claims in one word), `starts` (which need no look-up), `quick` (most
//! blocks of a batch), `checked` (claims that the walk adds), this file, then `log` (all of them).
//!
//! Invariant: claims of one address keep the order in which they were made. The first claim of a
//! block decides whether later ones are double reports.

pub(crate) mod claimants;
pub(crate) mod words;
mod packed;
pub(crate) mod starts;
mod quick;
mod checked;
mod fields;
mod log;

use std::cell::{Cell, RefCell};

use memreport::__private::{
    AroundBegin, AtBegin, Block, Claim, Claimant, ClaimantBits, CountedBlocks, ExpectedBlock,
    ExpectedBlocks, ExpectedSizes, FieldCache, Found, NumberedRegion, Position, QuickClaims,
    Recorder, Region, RegionBlocks, RegionNumber, ShortClaim, Words, Wrong,
};
use memreport::Field;

use self::claimants::Claimants;
use self::fields::VisitedFields;
pub(crate) use self::log::ClaimLog;
use self::packed::PackedClaims;
use self::starts::{Starts, StartsOfRegion, start_of};
use self::words::{LARGE, MAX_CLAIMANTS, OLD, WRONG_KINDS, WRONG_SHIFT, second_word};
use super::holders::reached::Roots;
use super::holders::skipped::SkippedPointers;
use crate::mem::pages::PageList;
use crate::mem::radix_sort::ByRegion;
use crate::mem::sys;
use crate::table::blocks::Granule;
use crate::table::epoch::Epoch;
use crate::table::packed_block::PackedBlock;
use crate::table::{BLOCKS, has_gaps};

/// Returns the address that a claim is filed under: the start of the claimed block, or the claimed
/// address if no block starts there. `None` if the value owns no block.
pub(crate) fn claimed_address(claim: Claim, found: Found) -> Option<usize> {
    if found.block.is_none() && found.wrong.is_none() {
        return None;
    }
    Some(claimed_block(found).map_or(claim.address, |block| block.start))
}

/// Returns the claimed block. A claim of an address inside a block is not a claim of that block.
fn claimed_block(found: Found) -> Option<Block> {
    found.block.filter(|_| found.wrong != Some(Wrong::Interior))
}

/// The claims of one collection, in the order in which they are made.
#[derive(Debug)]
pub(crate) struct ClaimBuffer {
    granule: Granule,
    /// The epoch that began with the collection. Blocks of it are not part of the collection.
    epoch: Epoch,
    /// The blocks that were live when the collection began.
    starts: Starts,
    /// True if the table has every block, so that a claim of any other is wrong.
    has_every_block: bool,
    packed: PackedClaims,
    /// Bytes of claims that do not fit into 32 bits.
    large: RefCell<PageList<usize>>,
    /// The number of claims that were dropped because memory was short.
    lost: Cell<usize>,
    claimants: Claimants,
    fields: RefCell<VisitedFields>,
    visited_fields: FieldCache,
    /// The skipped fields of which so many values were read that no more will be.
    read_fields: FieldCache,
    skipped: RefCell<SkippedPointers>,
    /// The pointers of fields that are measured by following pointers.
    roots: RefCell<Roots>,
}

impl ClaimBuffer {
    /// Creates the buffer of a collection that begins with `epoch`, with room for one claim for
    /// each of `blocks` blocks. `starts` has the live blocks of the table.
    pub(crate) fn new(granule: Granule, epoch: Epoch, blocks: usize, starts: Starts) -> Self {
        ClaimBuffer {
            granule,
            epoch,
            starts,
            has_every_block: !has_gaps(),
            packed: PackedClaims::with_room(blocks),
            large: RefCell::new(PageList::new()),
            lost: Cell::new(0),
            claimants: Claimants::with_limit(MAX_CLAIMANTS),
            fields: RefCell::new(VisitedFields::new()),
            visited_fields: FieldCache::empty(),
            read_fields: FieldCache::empty(),
            skipped: RefCell::new(SkippedPointers::new(granule)),
            roots: RefCell::new(Roots::new(granule)),
        }
    }

    /// Sorts the claims by address.
    pub(crate) fn into_log(self) -> ClaimLog {
        self.check();
        let (packed, lost) = self.packed.into_words();
        let mut lost = self.lost.get() + lost;
        let regions = ByRegion::group(packed.iter());
        if regions.is_none() {
            lost += packed.iter().count();
        }
        // Frees the packed claims before the sorted ones take memory.
        drop(packed);
        let mut skipped = self.skipped.into_inner();
        skipped.look_up(&self.starts);
        ClaimLog {
            sorted: regions.map_or_else(PageList::new, ByRegion::sorted),
            large: self.large.into_inner(),
            lost,
            claimants: self.claimants,
            fields: self.fields.into_inner().into_list(),
            skipped,
            roots: self.roots.into_inner(),
        }
    }

    /// Returns the sizes of a block that can be claimed without a look-up in the table. `starts`
    /// has the blocks of its region.
    #[inline(always)]
    fn sizes_at(
        &self,
        start: usize,
        starts: Option<StartsOfRegion<'_>>,
        expected: &ExpectedBlocks<'_>,
        block: &ExpectedBlock,
    ) -> Option<ExpectedSizes> {
        // Larger sizes do not fit into a word: no query for them.
        if block.known().is_none() && block.size() > ShortClaim::MOST_REQUESTED {
            return None;
        }
        let at_begin = starts.map_or(AtBegin::NoBlock, |starts| starts.known.at(start));
        if at_begin == AtBegin::NoBlock && self.has_every_block {
            return None;
        }
        expected.sizes(block, at_begin)
    }

    /// Claims a block. Returns its usable bytes; `None` if it needs a whole look-up.
    // Not inlined: the quick way has fewer calls then, and saves no registers.
    #[cold]
    #[inline(never)]
    fn claim_slowly(
        &self,
        expected: &ExpectedBlocks<'_>,
        block: &ExpectedBlock,
        claimant: Claimant,
    ) -> Option<usize> {
        let (start, requested) = (start_of(block), block.size());
        let starts = self.starts.of(Region::of(start));
        if let Some(sizes) = self.sizes_at(start, starts, expected, block)
            && self.push_short(start, sizes, claimant)
        {
            return Some(sizes.usable);
        }
        if !self.has_every_block {
            return None;
        }
        let small = BLOCKS.find_small(self.granule, start, requested)?;
        let sizes = ExpectedSizes { requested: Some(requested), usable: small.usable };
        if !self.is_old(small.packed) || !self.push_short(start, sizes, claimant) {
            self.push_long(start, small.usable, claimant, self.old_flag(Some(small.packed)));
        }
        Some(small.usable)
    }

    /// Adds a claim, if it fits into one word. Returns whether that is so.
    fn push_short(&self, start: usize, sizes: ExpectedSizes, claimant: Claimant) -> bool {
        let bits = self.claimants.id(claimant).and_then(|id| ClaimantBits::of(id.0));
        let short = bits.and_then(|bits| ShortClaim::new(start, sizes, bits));
        let word = short.and_then(|short| self.word_of(short));
        word.map(|word| self.packed.push(word)).is_some()
    }

    /// Returns the word of a claim; `None` if its region can have no number.
    #[inline]
    fn word_of(&self, short: ShortClaim) -> Option<u64> {
        Some(short.in_region(self.number_of(short.region)?))
    }

    /// Returns the number of a region.
    #[inline]
    fn number_of(&self, region: Region) -> Option<RegionNumber> {
        let recent = self.packed.batch().region(region);
        recent.map(|known| known.number()).or_else(|| self.find_number_of(region))
    }

    #[cold]
    fn find_number_of(&self, region: Region) -> Option<RegionNumber> {
        let number = self.packed.number_of(region)?;
        let starts = self.starts.of(region).filter(|_| self.has_every_block);
        let blocks = starts.map(|starts| starts.known);
        self.packed.batch().insert_region(NumberedRegion::new(region, number, blocks));
        Some(number)
    }

    /// Adds a claim with its answer.
    #[cold]
    fn push_long(&self, address: usize, bytes: usize, claimant: Claimant, flags: u64) {
        let Some(claimant) = self.claimants.id(claimant) else { return self.count_lost() };
        let Some(bytes) =
            u32::try_from(bytes).map_or_else(|_| self.large(bytes), |bytes| Some(bytes.into()))
        else {
            return self.count_lost();
        };
        self.packed.push_long([address as u64, second_word(bytes, claimant, flags)]);
    }

    /// Stores a large number of bytes, and returns its index with the flag `LARGE`.
    fn large(&self, bytes: usize) -> Option<u64> {
        let mut large = self.large.borrow_mut();
        let number = u32::try_from(large.as_slice().len()).ok()?;
        large.push(bytes).then(|| LARGE | u64::from(number))
    }

    #[cold]
    fn count_lost(&self) {
        self.lost.set(self.lost.get() + 1);
    }

    /// Returns the flag `OLD` if the block was allocated before the collection.
    #[inline]
    fn old_flag(&self, packed: Option<PackedBlock>) -> u64 {
        if packed.is_some_and(|packed| self.is_old(packed)) { OLD } else { 0 }
    }

    #[inline]
    fn is_old(&self, packed: PackedBlock) -> bool {
        packed.epoch() != self.epoch
    }
}

impl ClaimBuffer {
    /// Adds a claim that was looked up.
    fn add_answered(&self, mut claim: Claim, found: Found, claimant: Claimant) {
        claim.address = sys::untagged(claim.address);
        let Some(address) = claimed_address(claim, found) else { return };
        let block = claimed_block(found);
        let flags = self.old_flag(block.and_then(|block| PackedBlock::from_word(block.identity)));
        if let Some(Block { requested, .. }) = block.filter(|_| flags == OLD)
            && found.wrong.is_none()
        {
            let sizes = ExpectedSizes { requested: Some(requested), usable: found.bytes };
            if self.push_short(address, sizes, claimant) {
                return;
            }
        }
        let wrong = WRONG_KINDS.iter().zip(0_u64..).find(|(wrong, _)| **wrong == found.wrong);
        let wrong = wrong.map_or(0, |(_, number)| number << WRONG_SHIFT);
        self.push_long(address, found.bytes, claimant, flags | wrong);
    }
}

impl Recorder for ClaimBuffer {
    fn claimed(&self, claim: Claim, found: Found, claimant: Claimant) {
        self.check();
        self.add_answered(claim, found, claimant);
    }

    fn quick_claims(&self) -> Option<QuickClaims<'_>> {
        Some(QuickClaims { batch: self.packed.batch(), claimants: self.claimants.recent() })
    }

    fn check_quick_claims(&self) {
        self.check();
    }

    fn make_room(&self) {
        self.check_oldest();
    }

    fn claimed_expected(&self, blocks: ExpectedBlocks<'_>, reporter: u32) -> CountedBlocks {
        self.check();
        // Where the table has gaps, sizes are known when blocks are added.
        if self.has_every_block {
            self.starts.prefetch(blocks.next);
        }
        let mut rest = blocks.blocks;
        let mut counted = CountedBlocks::default();
        loop {
            let quick = self.claim_quickly(&blocks, rest, reporter, &mut counted);
            let Some((slow, after)) = rest[quick..].split_first() else { return counted };
            rest = after;
            let claimant = Claimant { reporter, field: slow.field() };
            match self.claim_slowly(&blocks, slow, claimant) {
                Some(bytes) => counted += CountedBlocks { blocks: 1, bytes },
                None => (blocks.missed)(slow),
            }
        }
    }

    fn knows_all_regions(&self) -> bool {
        self.starts.is_complete()
    }

    fn nth_region(&self, index: usize) -> Option<RegionBlocks<'_>> {
        self.starts.nth(index)
    }

    fn known_region(&self, region: Region) -> Option<RegionBlocks<'_>> {
        self.starts.of(region).map(|starts| starts.known)
    }

    fn around_begin(&self, address: usize) -> AroundBegin {
        self.starts.around(sys::untagged(address))
    }

    fn visits(&self, field: &'static Field, _: usize, _: usize) {
        self.fields.borrow_mut().add(field);
        self.visited_fields.insert(field);
    }

    fn skips(&self, field: &'static Field, _: usize, _: usize, words: Words<'_>) {
        if let Some(index) = self.fields.borrow_mut().add(field) {
            let needs_more = self.skipped.borrow_mut().scan(field, index, words, &self.starts);
            if !needs_more {
                self.read_fields.insert(field);
            }
        }
    }

    fn visited_fields(&self) -> &FieldCache {
        &self.visited_fields
    }

    fn read_fields(&self) -> &FieldCache {
        &self.read_fields
    }

    fn reaches(&self, words: Words<'_>, claimant: Claimant) {
        match self.claimants.id(claimant) {
            Some(claimant) => self.roots.borrow_mut().read(words, claimant),
            None => self.count_lost(),
        }
    }

    fn position(&self) -> Position {
        let claims = self.packed.position();
        Position { claims, reached: self.roots.borrow().len() }
    }

    fn roll_back(&self, position: Position) {
        self.packed.truncate(position.claims);
        self.roots.borrow_mut().truncate(position.reached);
    }
}

#[cfg(test)]
mod tests {
    use super::words::{Allocated, ResolvedClaim};
    use super::*;

    #[test]
    fn sorted_claims_resolve_to_what_was_claimed() {
        let epoch = Epoch::FIRST;
        let buffer = ClaimBuffer::new(Granule::OF_32, epoch, 0, Starts::new(Granule::OF_32));
        let claimant = |reporter| Claimant { reporter, field: None };
        let block = |start| Block { start, requested: 8, usable: 24, identity: 1 };
        let inside = Some(block(0x20));
        let table = [
            (0x7fff_ffff_fff0, 24, None, Some(block(0x7fff_ffff_fff0)), 1),
            (0x10, 1 << 40, Some(Wrong::Partial), Some(block(0x10)), 2),
            (0x28, u32::MAX as usize, Some(Wrong::Interior), inside, 2),
            (0x7, 0, Some(Wrong::NonHeap), None, 3),
            (0x10, 5, Some(Wrong::Untracked), None, 1),
        ];
        for (address, bytes, wrong, block, reporter) in table {
            let place = memreport::__private::Place::Start;
            let claim = Claim { address, size: Some(bytes), place };
            buffer.claimed(claim, Found { bytes, block, wrong }, claimant(reporter));
        }
        let log = buffer.into_log();
        let resolved: Vec<_> = log.sorted().iter().map(|claim| log.resolve(claim)).collect();
        let expected = [3, 1, 4, 2, 0].map(|index: usize| table[index]);
        assert_eq!(resolved.len(), table.len());
        for (claim, (address, bytes, wrong, block, reporter)) in resolved.into_iter().zip(expected)
        {
            let is_old = block.is_some() && wrong != Some(Wrong::Interior);
            let (allocated, requested) = match wrong {
                None => (Allocated::Unknown, Some(8)),
                _ if is_old => (Allocated::Before, None),
                _ => (Allocated::During, None),
            };
            assert_eq!(log.claimants.get(claim.claimant).reporter, reporter);
            assert_eq!(
                claim,
                ResolvedClaim {
                    address,
                    allocated,
                    bytes,
                    requested,
                    claimant: claim.claimant,
                    wrong
                }
            );
        }
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn claims_that_the_walk_adds_itself_are_among_the_others_in_their_order() {
        let starts = Starts::new(Granule::OF_32);
        let mut buffer = ClaimBuffer::new(Granule::OF_32, Epoch::FIRST, 0, starts);
        buffer.has_every_block = false;
        let claimant = Claimant { reporter: 1, field: None };
        let quick = buffer.quick_claims().expect("the walk may add claims");
        quick.claimants.begin(1);
        let sizes = |requested| ExpectedSizes { requested, usable: 24 };
        assert!(!quick.push(0x40, sizes(Some(20)), None), "there is no region yet");
        let other = Region::BYTES + 0x20;
        for (start, requested, is_quick) in [
            (0x20, Some(20), false),
            (0x40, Some(19), true),
            (other, Some(18), false),
            (0x40, Some(17), true),
            (0x60, None, true),
        ] {
            assert_eq!(quick.push(start, sizes(requested), None), is_quick, "{start:x}");
            assert!(is_quick || buffer.push_short(start, sizes(requested), claimant));
        }
        let add = |index: usize| quick.push(0x100 + 32 * index, sizes(Some(16)), None);
        let refused = (0..100).filter(|index| !add(*index)).inspect(|index| {
            buffer.make_room();
            assert!(add(*index), "there is room");
        });
        assert_eq!(refused.count(), 1, "the batch was full once");
        let log = buffer.into_log();
        let claims = log.sorted().iter().map(|claim| log.resolve(claim));
        let found: Vec<_> = claims.map(|claim| (claim.address, claim.requested)).collect();
        let first = [(0x20, Some(20)), (0x40, Some(19)), (0x40, Some(17)), (0x60, None)];
        assert_eq!((&found[..4], found[found.len() - 1]), (&first[..], (other, Some(18))));
        assert_eq!(found.len(), 5 + 100);
    }
}

//! The newest claims of a recorder, which the walk over a value adds without a call.

use core::cell::Cell;
use core::ptr::without_provenance;

use super::claim::ExpectedSizes;
use super::claimant::RecentClaimants;
use super::prefetch::fetch;
use super::region_blocks::RegionBlocks;
use super::short_claim::{Region, RegionNumber, ShortClaim};
use crate::field::Field;

/// The parts of a recorder that the walk may write, to add claims.
#[derive(Clone, Copy, Debug)]
pub struct QuickClaims<'r> {
    /// The newest claims.
    pub batch: &'r ClaimBatch,
    /// The numbers of the last claimants.
    pub claimants: &'r RecentClaimants,
}

impl QuickClaims<'_> {
    /// Adds a claim, by this field, of a block whose sizes are known. Returns `false`, and adds
    /// nothing, if the batch is full, the claim does not fit into a word, or its claimant or its
    /// region is none of the last ones. An address with a tag is in no such region.
    #[inline(always)]
    #[must_use]
    pub fn push(&self, start: usize, sizes: ExpectedSizes, field: Option<&'static Field>) -> bool {
        let pack = |bits| ShortClaim::new(start, sizes, bits);
        self.claimants.bits(field).and_then(pack).is_some_and(|short| self.batch.add(short))
    }

    /// Adds a claim of a block that the recorder knows, as [`push`](Self::push) does.
    #[inline(always)]
    #[must_use]
    pub fn push_found(&self, start: usize, usable: usize, field: Option<&'static Field>) -> bool {
        let pack = |bits| ShortClaim::of_found(start, usable, bits);
        self.claimants.bits(field).and_then(pack).is_some_and(|short| self.batch.add(short))
    }

    /// Adds a claim as [`push`](Self::push) does, of less than 4 KiB with at most 126 bytes of
    /// slop. Prefetches for the check of it if it `is_checked`.
    #[inline(always)]
    #[must_use]
    pub fn push_small(
        &self,
        start: usize,
        (requested, usable): (usize, usize),
        field: Option<&'static Field>,
        is_checked: bool,
    ) -> bool {
        let Some(bits) = self.claimants.bits(field) else { return false };
        let Some(known) = self.batch.region(Region::of(start)) else { return false };
        if !ShortClaim::is_aligned(start) {
            return false;
        }
        if is_checked {
            known.prefetch_code(start);
        }
        let short = ShortClaim::of_small(start, requested, usable, bits);
        self.batch.add_word(short.in_region(known.number))
    }
}

/// The newest words of a recorder's list of claims.
#[derive(Debug)]
pub struct ClaimBatch {
    words: [Cell<u64>; Self::WORDS],
    /// The number of words in use, from the first one on.
    used: Cell<usize>,
    /// The number of words, from the first one on, that the recorder has checked or added.
    checked: Cell<usize>,
    /// A direct-mapped cache of the regions of claims.
    regions: [Cell<NumberedRegion>; 64],
}

/// A region whose claims can be added to a batch.
#[derive(Clone, Copy, Debug)]
pub struct NumberedRegion {
    region: Region,
    number: RegionNumber,
    /// The address of the codes of its blocks, by which claims are checked; 0 if there are none.
    codes: usize,
    /// The bytes that blocks are aligned to, as a power of two.
    align_bits: u32,
}

impl NumberedRegion {
    /// There is no region.
    const NONE: Self = NumberedRegion {
        region: Region::NONE,
        number: RegionNumber::ZERO,
        codes: 0,
        align_bits: 0,
    };

    /// Creates a region with the number that it has in the recorder's list. `blocks` are those by
    /// which its claims will be checked.
    #[must_use]
    pub fn new(region: Region, number: RegionNumber, blocks: Option<RegionBlocks<'_>>) -> Self {
        NumberedRegion {
            region,
            number,
            codes: blocks.map_or(0, |blocks| blocks.codes.as_ptr().addr()),
            align_bits: blocks.map_or(0, |blocks| blocks.sizes.align_bits),
        }
    }

    /// Returns the number of the region.
    #[inline(always)]
    #[must_use]
    pub fn number(&self) -> RegionNumber {
        self.number
    }

    /// Prefetches for the check of a claim of the region. Without codes, the address is any.
    #[inline(always)]
    fn prefetch_code(&self, start: usize) {
        let index = (start & Region::WITHIN) >> (self.align_bits & (usize::BITS - 1));
        fetch(without_provenance(self.codes.wrapping_add(index)));
    }
}

impl ClaimBatch {
    /// The number of words of a batch.
    pub const WORDS: usize = 64;

    /// Creates an empty batch.
    #[must_use]
    pub const fn new() -> Self {
        ClaimBatch {
            words: [const { Cell::new(0) }; Self::WORDS],
            used: Cell::new(0),
            checked: Cell::new(0),
            regions: [const { Cell::new(NumberedRegion::NONE) }; 64],
        }
    }

    /// Adds a word of the recorder's own, when all words before are checked. Returns `false` if
    /// there is no place.
    #[inline(always)]
    pub fn push(&self, word: u64) -> bool {
        let is_added = self.add_word(word);
        self.set_checked();
        is_added
    }

    /// Adds a claim. Returns `false` if there is no place, or the region is none of the last ones.
    #[inline(always)]
    fn add(&self, claim: ShortClaim) -> bool {
        let known = self.region(claim.region);
        known.is_some_and(|known| self.add_word(claim.in_region(known.number)))
    }

    #[inline(always)]
    fn add_word(&self, word: u64) -> bool {
        let used = self.used.get();
        let Some(place) = self.words.get(used) else { return false };
        place.set(word);
        self.used.set(used + 1);
        true
    }

    /// Returns the words that the walk has added since [`set_checked`](Self::set_checked).
    #[inline]
    #[must_use]
    pub fn unchecked(&self) -> &[Cell<u64>] {
        self.words.get(self.checked.get()..self.used.get()).unwrap_or(&[])
    }

    /// Notes that all words are checked.
    #[inline(always)]
    pub fn set_checked(&self) {
        self.checked.set(self.used.get());
    }

    /// Removes the last words.
    pub fn remove_last(&self, words: usize) {
        self.used.set(self.used.get().saturating_sub(words));
        self.checked.set(self.checked.get().min(self.used.get()));
    }

    /// Returns the words.
    #[inline(always)]
    #[must_use]
    pub fn words(&self) -> &[Cell<u64>] {
        self.words.get(..self.used.get()).unwrap_or(&self.words)
    }

    /// Returns the number of the first words that are checked.
    #[must_use]
    pub fn checked(&self) -> usize {
        self.checked.get()
    }

    /// Returns the free places.
    #[inline(always)]
    #[must_use]
    pub fn free(&self) -> &[Cell<u64>] {
        self.words.get(self.used.get()..).unwrap_or(&[])
    }

    /// Adds the words that were stored in the first free places, as checked ones.
    #[inline(always)]
    pub fn add_stored(&self, words: usize) {
        self.used.set(self.used.get() + words);
        self.set_checked();
    }

    /// Removes the first words, among which are all that are checked.
    pub fn remove_first(&self, words: usize) {
        let used = self.used.get();
        for (place, word) in self.words.iter().zip(self.words.get(words..used).unwrap_or(&[])) {
            place.set(word.get());
        }
        self.used.set(used.saturating_sub(words));
        self.checked.set(0);
    }

    /// Removes all words.
    pub fn clear(&self) {
        self.remove_last(self.used.get());
    }

    /// Returns a region if it is one of the last ones.
    #[inline(always)]
    #[must_use]
    pub fn region(&self, region: Region) -> Option<NumberedRegion> {
        let known = self.place_of(region).get();
        (known.region == region).then_some(known)
    }

    /// Inserts a region, in place of the one in its slot.
    pub fn insert_region(&self, region: NumberedRegion) {
        self.place_of(region.region).set(region);
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "it is less than 64")]
    fn place_of(&self, Region(region): Region) -> &Cell<NumberedRegion> {
        &self.regions[region as usize % self.regions.len()]
    }
}

impl Default for ClaimBatch {
    fn default() -> Self {
        ClaimBatch::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracker::claimant::Claimant;
    use crate::tracker::short_claim::{ClaimantBits, unpack_sizes};

    #[test]
    fn words_of_the_walk_are_unchecked_until_the_recorder_has_checked_them() {
        let (batch, claimants) = (ClaimBatch::new(), RecentClaimants::new());
        claimants.insert(Claimant { reporter: 0, field: None }, ClaimantBits::ZERO);
        batch.insert_region(NumberedRegion::new(Region(0), RegionNumber::ZERO, None));
        let quick = QuickClaims { batch: &batch, claimants: &claimants };
        let sizes = ExpectedSizes { requested: Some(20), usable: 24 };
        let add = || assert!(quick.push(0x40, sizes, None));
        assert!(batch.push(1));
        assert!(batch.unchecked().is_empty());
        add();
        add();
        assert_eq!((batch.unchecked().len(), batch.words().len()), (2, 3));
        batch.remove_last(1);
        assert_eq!((batch.unchecked().len(), batch.words().len()), (1, 2));
        batch.set_checked();
        assert!(batch.unchecked().is_empty());
        add();
        batch.remove_last(2);
        assert_eq!((batch.unchecked().len(), batch.words().len()), (0, 1));
        add();
        batch.clear();
        assert!(batch.push(1));
        add();
        add();
        batch.remove_first(2);
        assert_eq!((batch.unchecked().len(), batch.words().len()), (1, 1));
        assert_ne!(batch.words()[0].get(), 1);
    }

    #[test]
    fn a_claim_is_added_if_it_fits_beside_the_one_before() {
        let (batch, claimants) = (ClaimBatch::new(), RecentClaimants::new());
        let quick = QuickClaims { batch: &batch, claimants: &claimants };
        static FIELD: Field = Field::of::<u8>("field", file!(), line!());
        let add_by = |start, requested, usable, field| {
            quick.push(start, ExpectedSizes { requested, usable }, field)
        };
        let add = |start, requested, usable| add_by(start, requested, usable, None);
        assert!(!add(0x40, Some(20), 24), "the claimant has no number yet");
        let bits = ClaimantBits::of(7).expect("it fits");
        claimants.insert(Claimant { reporter: 0, field: None }, bits);
        assert!(!add(0x40, Some(20), 24), "there is no region yet");
        let number = RegionNumber::of(2).expect("it fits");
        batch.insert_region(NumberedRegion::new(Region::of(0x20), number, None));
        assert!(add(0x40, Some(20), 24) && add(0x60, None, 24));
        assert!(quick.push_small(0x20, (20, 24), None, false));
        assert!(quick.push_found(0x30, 24, None));
        for start in [0x21, Region::BYTES + 0x20] {
            assert!(!quick.push_small(start, (20, 24), None, false), "{start:x}");
            assert!(!quick.push_found(start, 24, None), "{start:x}");
        }
        for (start, requested, usable, field) in [
            (0x80 + Region::BYTES, Some(20), 24, None),
            (0x80 | 0xa5 << 56, Some(20), 24, None),
            (0x81, Some(20), 24, None),
            (0x80, Some(1 << 12), 1 << 12, None),
            (0x80, Some(20), 147, None),
            (0x80, Some(20), 19, None),
            (0x80, Some(20), 24, Some(&FIELD)),
        ] {
            assert!(!add_by(start, requested, usable, field), "{start:x} {requested:?} {usable}");
        }
        let found: Vec<_> = batch
            .words()
            .iter()
            .map(|word| {
                assert_eq!(RegionNumber::index_of(word.get()), 2);
                let short = ShortClaim::of_word(word.get(), Region(0));
                let sizes = unpack_sizes(usize::try_from(short.sizes()).unwrap());
                (short.address(), sizes.requested, sizes.usable, short.claimant())
            })
            .collect();
        let expected = [(0x40, Some(20)), (0x60, None), (0x20, Some(20)), (0x30, None)];
        assert_eq!(found, expected.map(|(start, requested)| (start, requested, 24, 7)));
        let added = (0..100).filter(|index| add(0x100 + 32 * index, Some(20), 24)).count();
        assert_eq!(added, ClaimBatch::WORDS - 4, "until the batch is full");
        batch.clear();
        assert!(add(0x40, Some(20), 24));
    }
}

//! Claims in the order in which they are made, nearly all in one word.
//!
//! The time of a collection is mostly the memory traffic of its claims, hence one word. The newest
//! claims are in a batch that stays in the processor's first cache, and are appended together, past
//! the caches: the values that are measured would have to leave them otherwise.
//!
//! ```text
//! a short claim  bits 0-62    the claim (`ShortClaim` of memreport), with the number of its region
//!                bit 63       0
//! a long claim   bits 62-63   2, followed by the two words of the claim
//! ```
//!
//! The first regions of 4 GiB get a number; all claims of others are long.
//!
//! Whether a short claim is right is not known yet: the pass over all blocks compares it with the
//! block at its address.

use std::array::from_fn;
use std::cell::{Cell, RefCell};

use memreport::__private::{ClaimBatch, Region, RegionNumber, ShortClaim};

use super::claimants::ClaimantId;
use super::words::{self, ClaimWords};
use crate::mem::pages::PageList;
use crate::mem::sys;

/// The lowest bit of a word's form.
const FORM_SHIFT: u32 = 62;

const LONG: u64 = 2;

/// The most words whose pages are made resident before a reporter runs: it may hold a lock of the
/// program meanwhile.
const MAX_TOUCHED: usize = 4 << 20;

/// Packed claims in the order in which they were made.
#[derive(Debug)]
pub(crate) struct PackedClaims {
    /// The newest words. Invariant: a claim is in one batch.
    batch: ClaimBatch,
    words: RefCell<PageList<u64>>,
    regions: Cell<Regions>,
    /// The number of claims that were lost because memory was short.
    lost: Cell<usize>,
    /// The number of words before the first batch that was lost since the last
    /// [`position`](Self::position).
    before_lost: Cell<usize>,
}

/// The regions that have a number, by it; `Region::NONE` behind the last one.
type Regions = [Region; RegionNumber::COUNT];

impl PackedClaims {
    /// Creates a list with room for so many short claims.
    pub(crate) fn with_room(claims: usize) -> Self {
        let mut words = PageList::with_capacity(claims);
        words.touch(claims.min(MAX_TOUCHED));
        PackedClaims {
            batch: ClaimBatch::new(),
            words: RefCell::new(words),
            regions: Cell::new([Region::NONE; RegionNumber::COUNT]),
            lost: Cell::new(0),
            before_lost: Cell::new(usize::MAX),
        }
    }

    /// Returns the batch, for claims that need no call.
    #[inline]
    pub(crate) fn batch(&self) -> &ClaimBatch {
        &self.batch
    }

    /// Returns the number of a region, which it gets if it has none; `None` if there are too many.
    pub(crate) fn number_of(&self, region: Region) -> Option<RegionNumber> {
        let mut regions = self.regions.get();
        let index = regions.iter().position(|known| *known == region || *known == Region::NONE)?;
        regions[index] = region;
        self.regions.set(regions);
        RegionNumber::of(index)
    }

    /// Returns the regions that have a number, by it.
    pub(crate) fn regions(&self) -> Regions {
        self.regions.get()
    }

    /// Returns at most `claims` free places of the batch.
    #[inline(always)]
    pub(crate) fn free_places(&self, claims: usize) -> &[Cell<u64>] {
        self.make_room(claims.min(ClaimBatch::WORDS));
        let free = self.batch.free();
        free.get(..claims).unwrap_or(free)
    }

    /// Adds a short claim, with the number of its region. If memory is short, it may be lost, and
    /// is counted.
    pub(crate) fn push(&self, word: u64) {
        self.make_room(1);
        self.push_word(word);
    }

    /// Adds a claim that does not fit into one word. If memory is short, it may be lost, and is
    /// counted.
    #[cold]
    pub(crate) fn push_long(&self, claim: ClaimWords) {
        self.make_room(3);
        [LONG << FORM_SHIFT, claim[0], claim[1]].into_iter().for_each(|word| self.push_word(word));
    }

    /// Adds a word, for which there is room.
    fn push_word(&self, word: u64) {
        let has_room = self.batch.push(word);
        debug_assert!(has_room, "room was made");
    }

    /// Appends the batch to the list, if it has no place for so many words.
    fn make_room(&self, words: usize) {
        if self.batch.free().len() < words {
            self.flush();
        }
    }

    /// Appends the batch to the list. If memory is short, its claims are lost, and are counted.
    // Not inlined: the loop that stores claims has its values in registers then.
    #[inline(never)]
    fn flush(&self) {
        self.append(self.batch.words());
        self.batch.clear();
    }

    /// Appends the first words of the batch to the list, among which are all that are checked.
    pub(crate) fn flush_first(&self, words: usize) {
        self.append(self.batch.words().get(..words).unwrap_or(&[]));
        self.batch.remove_first(words);
    }

    /// Appends words to the list. If memory is short, their claims are lost, and are counted.
    fn append(&self, batch: &[Cell<u64>]) {
        let mut list = self.words.borrow_mut();
        let before = list.as_slice().len();
        if !list.push_all_past_caches(batch) {
            self.count_lost(batch);
            self.before_lost.set(before.min(self.before_lost.get()));
        }
    }

    #[cold]
    fn count_lost(&self, batch: &[Cell<u64>]) {
        let words: [u64; ClaimBatch::WORDS] =
            from_fn(|index| batch.get(index).map_or(0, Cell::get));
        let words = words.get(..batch.len()).unwrap_or(&[]);
        let claims = Unpacked { words: words.iter(), regions: self.regions() };
        self.lost.set(self.lost.get() + claims.count());
    }

    /// Returns the position of the next claim, for [`truncate`](Self::truncate).
    pub(crate) fn position(&self) -> usize {
        self.before_lost.set(usize::MAX);
        self.words.borrow().as_slice().len() + self.batch.words().len()
    }

    /// Removes the claims from this position on.
    pub(crate) fn truncate(&self, position: usize) {
        self.flush();
        // A lost batch began before that position, if it had words of the time before.
        self.words.borrow_mut().truncate(position.min(self.before_lost.get()));
    }

    /// Returns the packed claims, and the number of those that were lost because memory was short.
    pub(crate) fn into_words(self) -> (PackedWords, usize) {
        self.flush();
        sys::end_writes_past_caches();
        let (words, regions) = (self.words.into_inner(), self.regions.get());
        (PackedWords { words, regions }, self.lost.get())
    }
}

/// The words of packed claims.
#[derive(Debug)]
pub(crate) struct PackedWords {
    words: PageList<u64>,
    regions: Regions,
}

impl PackedWords {
    /// Unpacks the claims in their order.
    pub(crate) fn iter(&self) -> Unpacked<'_> {
        Unpacked { words: self.words.as_slice().iter(), regions: self.regions }
    }
}

/// An iterator over unpacked claims.
#[derive(Clone, Debug)]
pub(crate) struct Unpacked<'p> {
    words: std::slice::Iter<'p, u64>,
    regions: Regions,
}

impl Iterator for Unpacked<'_> {
    type Item = ClaimWords;

    #[inline]
    fn next(&mut self) -> Option<ClaimWords> {
        let word = *self.words.next()?;
        if word >> FORM_SHIFT == LONG {
            return Some([*self.words.next()?, *self.words.next()?]);
        }
        let short = short_claim(&self.regions, word);
        let claimant = ClaimantId(short.claimant());
        Some([short.address(), words::second_word(short.sizes(), claimant, words::EXPECTED)])
    }
}

/// Returns the short claim of a word.
#[inline]
pub(crate) fn short_claim(regions: &Regions, word: u64) -> ShortClaim {
    ShortClaim::of_word(word, regions[RegionNumber::index_of(word)])
}

#[cfg(test)]
mod tests {
    use memreport::__private::{ClaimantBits, ExpectedSizes, pack_sizes};

    use super::*;
    use crate::mem::sys::shortage;

    /// Adds a short claim.
    fn push(packed: &PackedClaims, short: ShortClaim) {
        packed.push(short.in_region(packed.number_of(short.region).expect("there are few")));
    }

    #[test]
    fn packing_and_unpacking_round_trips() {
        let addresses = [0x10, 0x7fff_ffff_fff8, 0x7fff_0000_0000, 0x18, 0x1c, usize::MAX, 0x20];
        let claimants = [0, 1, (1 << 11) - 1, 1 << 11].map(ClaimantId);
        let packed = PackedClaims::with_room(0);
        let (mut expected, mut shorts) = (Vec::new(), 0);
        let known = |requested, usable| ExpectedSizes { requested: Some(requested), usable };
        let unknown = |usable| ExpectedSizes { requested: None, usable };
        let sizes = [known(1, 24), known(24, 24), known(4095, 4095 + 126), unknown(9)];
        let others = [known(25, 24), known(4096, 4096), known(8, 135), unknown(4096)];
        for address in addresses {
            for sizes in sizes.into_iter().chain(others) {
                for claimant in claimants {
                    let bits = ClaimantBits::of(claimant.0);
                    let short = bits.and_then(|bits| ShortClaim::new(address, sizes, bits));
                    expected.push(if let Some(short) = short {
                        shorts += 1;
                        push(&packed, short);
                        let packed_sizes = pack_sizes(sizes).expect("they fit");
                        let second = words::second_word(packed_sizes, claimant, words::EXPECTED);
                        [address as u64, second]
                    } else {
                        let claim = [address as u64, words::second_word(7, claimant, words::OLD)];
                        packed.push_long(claim);
                        claim
                    });
                }
            }
        }
        assert_eq!(shorts, 5 * 4 * 3, "aligned, small sizes, a small claimant number");
        assert!(expected.len() > ClaimBatch::WORDS);
        let (packed, lost) = packed.into_words();
        assert_eq!(packed.iter().collect::<Vec<_>>(), expected);
        assert_eq!(lost, 0);
    }

    #[test]
    fn regions_keep_their_number_after_a_roll_back() {
        let sizes = ExpectedSizes { requested: Some(8), usable: 8 };
        let short = |address| ShortClaim::new(address, sizes, ClaimantBits::ZERO).unwrap();
        let packed = PackedClaims::with_room(0);
        push(&packed, short(0x1_0000_0000));
        let position = packed.position();
        push(&packed, short(0x2_0000_0000));
        packed.truncate(position);
        push(&packed, short(0x2_0000_0010));
        push(&packed, short(0x1_0000_0020));
        for region in 3..=RegionNumber::COUNT as u64 {
            assert!(packed.number_of(Region(region)).is_some());
        }
        assert_eq!(packed.number_of(Region(100)), None);
        assert!(packed.number_of(Region(2)).is_some());
        let addresses: Vec<_> = packed.into_words().0.iter().map(|claim| claim[0]).collect();
        assert_eq!(addresses, [0x1_0000_0000, 0x2_0000_0010, 0x1_0000_0020]);
    }

    #[test]
    fn a_roll_back_removes_all_behind_a_lost_batch() {
        let sizes = ExpectedSizes { requested: Some(8), usable: 8 };
        let short = |at: usize| ShortClaim::new(8 * at, sizes, ClaimantBits::ZERO).unwrap();
        let packed = PackedClaims::with_room(0);
        push(&packed, short(1));
        let position = packed.position();
        shortage::run(|| (0..ClaimBatch::WORDS).for_each(|at| push(&packed, short(at))));
        (0..ClaimBatch::WORDS).for_each(|at| push(&packed, short(at)));
        packed.truncate(position);
        push(&packed, short(7));
        let (words, lost) = packed.into_words();
        assert_eq!(words.iter().map(|claim| claim[0]).collect::<Vec<_>>(), [56]);
        assert_eq!(lost, ClaimBatch::WORDS, "the first claim, and others of its batch");
    }

    #[test]
    fn batches_that_are_lost_are_counted_and_later_claims_are_right() {
        let packed = PackedClaims::with_room(0);
        let sizes = ExpectedSizes { requested: Some(8), usable: 8 };
        let short = |at: usize| ShortClaim::new(0x7_0000_0000 + 8 * at, sizes, ClaimantBits::ZERO);
        let add = |at: usize| push(&packed, short(at).expect("it is short"));
        shortage::run(|| (0..200).for_each(add));
        (200..300).for_each(add);
        let (words, lost) = packed.into_words();
        let addresses: Vec<_> = words.iter().map(|claim| claim[0]).collect();
        let first = 300 - addresses.len();
        assert!((128..=200).contains(&lost) && first == lost, "{lost} {first}");
        let expected = (first..300).map(|at| 0x7_0000_0000 + 8 * at as u64);
        assert!(addresses.into_iter().eq(expected));
    }
}

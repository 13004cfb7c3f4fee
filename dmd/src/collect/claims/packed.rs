//! Claims in the order in which they are made, nearly all in one word.
//!
//! The time of a collection is mostly the memory traffic of its claims, hence one word. The newest
//! claims are in a batch that stays in the processor's first cache, and are appended together, past
//! the caches: the values that are measured would have to leave them otherwise.
//!
//! ```text
//! a short claim  bits 0-62    the claim (`ShortClaim` of memreport)
//!                bit 63       0
//! a region       bits 0-61    the upper half of the addresses of the short claims that follow
//!                bits 62-63   3
//! a long claim   bits 62-63   2, followed by the two words of the claim
//! ```
//!
//! Whether a short claim is right is not known yet: the pass over all blocks compares it with the
//! block at its address.

use std::array::from_fn;
use std::cell::{Cell, RefCell};

use memreport::__private::{ClaimBatch, Region, ShortClaim};

use super::claimants::ClaimantId;
use super::words::{self, ClaimWords};
use crate::mem::pages::PageList;
use crate::mem::sys;

/// The lowest bit of a word's form.
const FORM_SHIFT: u32 = 62;

const LONG: u64 = 2;
const REGION: u64 = 3;

/// The most words whose pages are made resident before a reporter runs: it may hold a lock of the
/// program meanwhile.
const MAX_TOUCHED: usize = 4 << 20;

/// Packed claims in the order in which they were made.
#[derive(Debug)]
pub(crate) struct PackedClaims {
    /// The newest words. Invariant: a claim is in one batch.
    batch: ClaimBatch,
    words: RefCell<PageList<u64>>,
    /// The number of claims that were lost because memory was short.
    lost: Cell<usize>,
}

impl PackedClaims {
    /// Creates a list with room for so many short claims.
    pub(crate) fn with_room(claims: usize) -> Self {
        let mut words = PageList::with_capacity(claims);
        words.touch(claims.min(MAX_TOUCHED));
        PackedClaims { batch: ClaimBatch::new(), words: RefCell::new(words), lost: Cell::new(0) }
    }

    /// Returns the batch, for claims that need no call.
    #[inline]
    pub(crate) fn batch(&self) -> &ClaimBatch {
        &self.batch
    }

    /// Returns at most `claims` free places of the batch, for claims in its region.
    #[inline(always)]
    pub(crate) fn free_places(&self, claims: usize) -> &[Cell<u64>] {
        self.make_room(claims.min(ClaimBatch::WORDS));
        let free = self.batch.free();
        free.get(..claims).unwrap_or(free)
    }

    /// Adds a claim. If memory is short, it may be lost, and is counted.
    pub(crate) fn push(&self, short: ShortClaim) {
        self.make_room(2);
        // Also if the batch was lost.
        if short.region != self.batch.region() {
            self.push_word(REGION << FORM_SHIFT | short.region.0);
            self.batch.set_region(short.region);
        }
        self.push_word(short.word);
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
        let batch = self.batch.words();
        self.batch.clear();
        if !self.words.borrow_mut().push_all_past_caches(batch) {
            self.count_lost(batch);
            // The words of a region may be among them.
            self.batch.set_region(Region::NONE);
        }
    }

    #[cold]
    fn count_lost(&self, batch: &[Cell<u64>]) {
        let words: [u64; ClaimBatch::WORDS] =
            from_fn(|index| batch.get(index).map_or(0, Cell::get));
        let claims = Unpacked::of(words.get(..batch.len()).unwrap_or(&[]));
        self.lost.set(self.lost.get() + claims.count());
    }

    /// Returns the position of the next claim, for [`truncate`](Self::truncate).
    pub(crate) fn position(&self) -> usize {
        self.words.borrow().as_slice().len() + self.batch.words().len()
    }

    /// Removes the claims from this position on.
    pub(crate) fn truncate(&self, position: usize) {
        self.flush();
        self.words.borrow_mut().truncate(position);
        self.batch.set_region(Region::NONE);
    }

    /// Returns the packed claims, and the number of those that were lost because memory was short.
    pub(crate) fn into_words(self) -> (PackedWords, usize) {
        self.flush();
        sys::end_writes_past_caches();
        (PackedWords(self.words.into_inner()), self.lost.get())
    }
}

/// The words of packed claims.
#[derive(Debug)]
pub(crate) struct PackedWords(PageList<u64>);

impl PackedWords {
    /// Unpacks the claims in their order.
    pub(crate) fn iter(&self) -> Unpacked<'_> {
        Unpacked::of(self.0.as_slice())
    }
}

/// An iterator over unpacked claims.
#[derive(Clone, Debug)]
pub(crate) struct Unpacked<'p> {
    words: std::slice::Iter<'p, u64>,
    region: Region,
}

impl Iterator for Unpacked<'_> {
    type Item = ClaimWords;

    #[inline]
    fn next(&mut self) -> Option<ClaimWords> {
        loop {
            let word = *self.words.next()?;
            match word >> FORM_SHIFT {
                REGION => self.region = Region(word & !(REGION << FORM_SHIFT)),
                LONG => return Some([*self.words.next()?, *self.words.next()?]),
                _ => return Some(self.unpack(word)),
            }
        }
    }
}

impl<'p> Unpacked<'p> {
    fn of(words: &'p [u64]) -> Self {
        Unpacked { words: words.iter(), region: Region::NONE }
    }

    #[inline]
    fn unpack(&self, word: u64) -> ClaimWords {
        let short = ShortClaim { region: self.region, word };
        let claimant = ClaimantId(short.claimant());
        [short.address(), words::second_word(short.sizes(), claimant, words::EXPECTED)]
    }
}

#[cfg(test)]
mod tests {
    use memreport::__private::{ClaimantBits, ExpectedSizes, pack_sizes};

    use super::*;
    use crate::mem::sys::shortage;

    #[test]
    fn packing_and_unpacking_round_trips() {
        let addresses = [0x10, 0x7fff_ffff_fff8, 0x7fff_0000_0000, 0x18, 0x1c, usize::MAX, 0x20];
        let claimants = [0, 1, (1 << 12) - 1, 1 << 12].map(ClaimantId);
        let packed = PackedClaims::with_room(0);
        let (mut expected, mut shorts) = (Vec::new(), 0);
        let known = |requested, usable| ExpectedSizes { requested: Some(requested), usable };
        let unknown = |usable| ExpectedSizes { requested: None, usable };
        let sizes =
            [known(1, 24), known(24, 24), known((1 << 15) - 1, (1 << 15) + 125), unknown(9)];
        let others = [known(25, 24), known(1 << 15, 1 << 15), known(8, 135), unknown(1 << 15)];
        for address in addresses {
            for sizes in sizes.into_iter().chain(others) {
                for claimant in claimants {
                    let bits = ClaimantBits::of(claimant.0);
                    let short = bits.and_then(|bits| ShortClaim::new(address, sizes, bits));
                    expected.push(if let Some(short) = short {
                        shorts += 1;
                        packed.push(short);
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
    fn after_a_roll_back_a_region_is_written_again() {
        let sizes = ExpectedSizes { requested: Some(8), usable: 8 };
        let short = |address| ShortClaim::new(address, sizes, ClaimantBits::ZERO).unwrap();
        let packed = PackedClaims::with_room(0);
        packed.push(short(0x1_0000_0000));
        let position = packed.position();
        packed.push(short(0x2_0000_0000));
        packed.truncate(position);
        packed.push(short(0x2_0000_0010));
        packed.push(short(0x1_0000_0020));
        let addresses: Vec<_> = packed.into_words().0.iter().map(|claim| claim[0]).collect();
        assert_eq!(addresses, [0x1_0000_0000, 0x2_0000_0010, 0x1_0000_0020]);
    }

    #[test]
    fn batches_that_are_lost_are_counted_and_later_claims_are_right() {
        let packed = PackedClaims::with_room(0);
        let sizes = ExpectedSizes { requested: Some(8), usable: 8 };
        let short = |at: usize| ShortClaim::new(0x7_0000_0000 + 8 * at, sizes, ClaimantBits::ZERO);
        let push = |at: usize| packed.push(short(at).expect("it is short"));
        shortage::run(|| (0..200).for_each(push));
        (200..300).for_each(push);
        let (words, lost) = packed.into_words();
        let addresses: Vec<_> = words.iter().map(|claim| claim[0]).collect();
        let first = 300 - addresses.len();
        assert!((128..=200).contains(&lost) && first == lost, "{lost} {first}");
        let expected = (first..300).map(|at| 0x7_0000_0000 + 8 * at as u64);
        assert!(addresses.into_iter().eq(expected));
    }
}

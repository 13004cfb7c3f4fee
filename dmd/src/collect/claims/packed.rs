//! Claims in the order in which they are made, nearly all in one word.
//!
//! The time of a collection is mostly the memory traffic of its claims, hence one word. The newest
//! claims are in a batch that stays in the processor's first cache, and are appended together, past
//! the caches: the values that are measured would have to leave them otherwise.
//!
//! ```text
//! a short claim  bits 0-28    the address within its region, divided by 8
//!                bits 29-50   the sizes (`words::pack_sizes`)
//!                bits 51-62   the claimant
//!                bit 63       0
//! a region       bits 0-61    the upper half of the addresses of the short claims that follow
//!                bits 62-63   3
//! a long claim   bits 62-63   2, followed by the two words of the claim
//! ```
//!
//! Whether a short claim is right is not known yet: the pass over all blocks compares it with the
//! block at its address.
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]

use std::array::from_fn;
use std::cell::{Cell, RefCell};

use memreport::__private::{ExpectedSizes, KnownSizes};

use super::claimants::ClaimantId;
use super::words::{self, ClaimWords, SIZES_BITS};
use crate::mem::pages::PageList;
use crate::mem::sys;

/// The number of address bits within a region.
const REGION_BITS: u32 = 32;

/// Addresses of short claims are multiples of this power of two.
const ALIGNMENT_BITS: u32 = 3;

const SIZES_SHIFT: u32 = REGION_BITS - ALIGNMENT_BITS;
const CLAIMANT_SHIFT: u32 = SIZES_SHIFT + SIZES_BITS;
const FORM_SHIFT: u32 = 62;

const CLAIMANT_BITS: u32 = FORM_SHIFT + 1 - CLAIMANT_SHIFT;

const LONG: u64 = 2;
const REGION: u64 = 3;

/// A region that contains no address.
const NO_REGION: Region = Region(u64::MAX);

/// The number of words of a batch.
const BATCH: usize = 64;

/// The most words whose pages are made resident before a reporter runs: it may hold a lock of the
/// program meanwhile.
const MAX_TOUCHED: usize = 4 << 20;

/// Packed claims in the order in which they were made.
#[derive(Debug)]
pub(crate) struct PackedClaims {
    /// The newest words, of which `batched` are in use. Invariant: a claim is in one batch.
    batch: [Cell<u64>; BATCH],
    batched: Cell<usize>,
    words: RefCell<PageList<u64>>,
    /// The region of the last short claim.
    region: Cell<Region>,
    /// The number of claims that were lost because memory was short.
    lost: Cell<usize>,
}

/// A claim in one word, and its region.
#[derive(Clone, Copy)]
pub(crate) struct ShortClaim {
    region: Region,
    word: u64,
}

/// The upper half of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region(u64);

impl Region {
    /// The bytes of a region.
    pub(crate) const BYTES: usize = 1 << REGION_BITS;

    /// Returns the first address of the region.
    #[inline]
    pub(crate) fn first(self) -> usize {
        usize::try_from(self.0 << REGION_BITS).unwrap_or(usize::MAX)
    }

    /// Returns the region of an address.
    #[inline(always)]
    pub(crate) fn of(address: usize) -> Self {
        Region(address as u64 >> REGION_BITS)
    }
}

/// The bits of short claims that are equal for all claims of a claimant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimantBits(u64);

impl ClaimantBits {
    pub(crate) const ZERO: Self = ClaimantBits(0);

    /// Returns the bits; `None` if the number does not fit.
    pub(crate) fn of(claimant: ClaimantId) -> Option<Self> {
        let number = u64::from(claimant.0);
        (number >> CLAIMANT_BITS == 0).then_some(ClaimantBits(number << CLAIMANT_SHIFT))
    }
}

impl ShortClaim {
    /// Packs a claim into one word; `None` if it does not fit.
    #[inline(always)]
    pub(crate) fn new(start: usize, sizes: ExpectedSizes, bits: ClaimantBits) -> Option<Self> {
        let sizes = words::pack_sizes(sizes)?;
        if start & ((1 << ALIGNMENT_BITS) - 1) != 0 {
            return None;
        }
        Some(ShortClaim::packed(start, sizes, bits))
    }

    /// Packs a claim whose sizes are known to fit: less than 32 KiB, with at most 126 bytes of
    /// slop. The address is one of a block.
    #[inline(always)]
    pub(crate) fn of_small(
        start: usize,
        requested: usize,
        usable: usize,
        bits: ClaimantBits,
    ) -> Self {
        let sizes = words::pack_fitting(requested, usable);
        debug_assert_eq!(
            words::pack_sizes(ExpectedSizes { requested: Some(requested), usable }),
            Some(sizes)
        );
        ShortClaim::packed(start, sizes, bits)
    }

    /// Packs a claim with packed sizes.
    #[inline(always)]
    fn packed(start: usize, sizes: u64, ClaimantBits(bits): ClaimantBits) -> Self {
        let within = (start & (Region::BYTES - 1)) as u64 >> ALIGNMENT_BITS;
        ShortClaim { region: Region::of(start), word: within | sizes << SIZES_SHIFT | bits }
    }

    /// Stores the claim at a place of [`PackedClaims::free_places`]. It must be in their region.
    #[inline(always)]
    pub(crate) fn store(self, place: &Cell<u64>) {
        place.set(self.word);
    }
}

impl PackedClaims {
    /// Creates a list with room for so many short claims.
    pub(crate) fn with_room(claims: usize) -> Self {
        let mut words = PageList::with_capacity(claims);
        words.touch(claims.min(MAX_TOUCHED));
        PackedClaims {
            batch: [const { Cell::new(0) }; BATCH],
            batched: Cell::new(0),
            words: RefCell::new(words),
            region: Cell::new(NO_REGION),
            lost: Cell::new(0),
        }
    }

    /// Returns the region of the last claim, and at most `claims` free places of the batch for
    /// claims in that region.
    #[inline(always)]
    pub(crate) fn free_places(&self, claims: usize) -> (Region, &[Cell<u64>]) {
        self.make_room(claims.min(BATCH));
        let free = self.batch.get(self.batched.get()..).unwrap_or(&[]);
        (self.region.get(), free.get(..claims).unwrap_or(free))
    }

    /// Returns whether the last claim is in this region.
    pub(crate) fn is_in(&self, region: Region) -> bool {
        self.region.get() == region
    }

    /// Adds the claims that were stored in the first places of
    /// [`free_places`](Self::free_places).
    #[inline(always)]
    pub(crate) fn take_places(&self, claims: usize) {
        self.batched.set(self.batched.get() + claims);
    }

    /// Adds a claim of a block whose sizes are known. Returns `false`, and adds nothing, if the
    /// batch is full, the claim does not fit into a word, or is of another region than the last.
    #[inline(always)]
    pub(crate) fn push_known(&self, start: usize, sizes: KnownSizes, bits: ClaimantBits) -> bool {
        let Some(sizes) = words::pack_known_sizes(sizes) else { return false };
        let Some(place) = self.batch.get(self.batched.get()) else { return false };
        if !self.is_in(Region::of(start)) || start & ((1 << ALIGNMENT_BITS) - 1) != 0 {
            return false;
        }
        ShortClaim::packed(start, sizes, bits).store(place);
        self.batched.set(self.batched.get() + 1);
        true
    }

    /// Adds a claim. If memory is short, it may be lost, and is counted.
    pub(crate) fn push(&self, short: ShortClaim) {
        self.make_room(2);
        // Also if the batch was lost.
        if short.region != self.region.get() {
            self.push_word(REGION << FORM_SHIFT | short.region.0);
            self.region.set(short.region);
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

    fn push_word(&self, word: u64) {
        if let Some(place) = self.batch.get(self.batched.get()) {
            place.set(word);
            self.batched.set(self.batched.get() + 1);
        }
    }

    /// Appends the batch to the list, if it has no place for so many words.
    fn make_room(&self, words: usize) {
        if self.batched.get() + words > BATCH {
            self.flush();
        }
    }

    /// Appends the batch to the list. If memory is short, its claims are lost, and are counted.
    fn flush(&self) {
        let batch: [u64; BATCH] = from_fn(|at| self.batch[at].get());
        let batch = batch.get(..self.batched.replace(0)).unwrap_or(&[]);
        if !self.words.borrow_mut().push_all_past_caches(batch) {
            let claims = Unpacked { words: batch.iter(), region: 0 };
            self.lost.set(self.lost.get() + claims.count());
            // The words of a region may be among them.
            self.region.set(NO_REGION);
        }
    }

    /// Returns the position of the next claim, for [`truncate`](Self::truncate).
    pub(crate) fn position(&self) -> usize {
        self.words.borrow().as_slice().len() + self.batched.get()
    }

    /// Removes the claims from this position on.
    pub(crate) fn truncate(&self, position: usize) {
        self.flush();
        self.words.borrow_mut().truncate(position);
        self.region.set(NO_REGION);
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
        Unpacked { words: self.0.as_slice().iter(), region: 0 }
    }
}

/// An iterator over unpacked claims.
#[derive(Clone, Debug)]
pub(crate) struct Unpacked<'p> {
    words: std::slice::Iter<'p, u64>,
    /// The first address of the region.
    region: u64,
}

impl Iterator for Unpacked<'_> {
    type Item = ClaimWords;

    #[inline]
    fn next(&mut self) -> Option<ClaimWords> {
        loop {
            let word = *self.words.next()?;
            match word >> FORM_SHIFT {
                REGION => self.region = word << REGION_BITS,
                LONG => return Some([*self.words.next()?, *self.words.next()?]),
                _ => return Some(self.unpack(word)),
            }
        }
    }
}

impl Unpacked<'_> {
    #[inline]
    fn unpack(&self, word: u64) -> ClaimWords {
        let cut = |from: u32, bits: u32| word >> from & ((1 << bits) - 1);
        let address = self.region | cut(0, SIZES_SHIFT) << ALIGNMENT_BITS;
        let claimant = ClaimantId(cut(CLAIMANT_SHIFT, CLAIMANT_BITS) as u32);
        let sizes = cut(SIZES_SHIFT, SIZES_BITS);
        [address, words::second_word(sizes, claimant, words::EXPECTED)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::sys::shortage;

    #[test]
    fn packing_and_unpacking_round_trips() {
        let addresses = [0x10, 0x7fff_ffff_fff8, 0x7fff_0000_0000, 0x18, 0x1c, usize::MAX, 0x20];
        let claimants = [0, 1, (1 << CLAIMANT_BITS) - 1, 1 << CLAIMANT_BITS].map(ClaimantId);
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
                    let bits = ClaimantBits::of(claimant);
                    let short = bits.and_then(|bits| ShortClaim::new(address, sizes, bits));
                    expected.push(if let Some(short) = short {
                        shorts += 1;
                        packed.push(short);
                        let packed_sizes = words::pack_sizes(sizes).expect("they fit");
                        assert_eq!(words::unpack_sizes(packed_sizes as usize), sizes);
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
        assert!(expected.len() > BATCH);
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

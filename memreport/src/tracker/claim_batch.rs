//! The newest claims of a recorder, which the walk over a value adds without a call.

use core::cell::Cell;

use super::claim::ExpectedSizes;
use super::claimant::{Claimant, RecentClaimants};
use super::short_claim::{Region, ShortClaim};

/// The parts of a recorder that the walk may write, to add claims.
#[derive(Clone, Copy, Debug)]
pub struct QuickClaims<'r> {
    /// The newest claims.
    pub batch: &'r ClaimBatch,
    /// The numbers of the last claimants.
    pub claimants: &'r RecentClaimants,
}

impl QuickClaims<'_> {
    /// Adds a claim of a block whose sizes are known. Returns `false`, and adds nothing, if the
    /// batch is full, the claim does not fit into a word, its claimant is none of the last ones, or
    /// the claim before is of another region. An address with a tag is in no such region.
    #[inline(always)]
    #[must_use]
    pub fn push(&self, start: usize, sizes: ExpectedSizes, claimant: Claimant) -> bool {
        let Some(bits) = self.claimants.bits(claimant) else { return false };
        let Some(short) = ShortClaim::new(start, sizes, bits) else { return false };
        short.region == self.batch.region.get() && self.batch.push(short.word)
    }
}

/// The newest words of a recorder's list of claims.
#[derive(Debug)]
pub struct ClaimBatch {
    words: [Cell<u64>; Self::WORDS],
    /// The number of words in use, from the first one on.
    used: Cell<usize>,
    /// The region of the last short claim.
    region: Cell<Region>,
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
            region: Cell::new(Region::NONE),
        }
    }

    /// Adds a word. Returns `false` if there is no place.
    #[inline(always)]
    pub fn push(&self, word: u64) -> bool {
        let used = self.used.get();
        let Some(place) = self.words.get(used) else { return false };
        place.set(word);
        self.used.set(used + 1);
        true
    }

    /// Returns the words.
    #[inline(always)]
    #[must_use]
    pub fn words(&self) -> &[Cell<u64>] {
        self.words.get(..self.used.get()).unwrap_or(&self.words)
    }

    /// Returns the free places.
    #[inline(always)]
    #[must_use]
    pub fn free(&self) -> &[Cell<u64>] {
        self.words.get(self.used.get()..).unwrap_or(&[])
    }

    /// Adds the words that were stored in the first free places.
    #[inline(always)]
    pub fn take(&self, words: usize) {
        self.used.set(self.used.get() + words);
    }

    /// Removes all words.
    pub fn clear(&self) {
        self.used.set(0);
    }

    /// Returns the region of the last short claim.
    #[inline(always)]
    #[must_use]
    pub fn region(&self) -> Region {
        self.region.get()
    }

    /// Sets the region of the short claims that follow.
    pub fn set_region(&self, region: Region) {
        self.region.set(region);
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
    use crate::tracker::short_claim::unpack_sizes;

    #[test]
    fn a_claim_is_added_if_it_fits_beside_the_one_before() {
        let (batch, claimants) = (ClaimBatch::new(), RecentClaimants::new());
        let quick = QuickClaims { batch: &batch, claimants: &claimants };
        let claimant = |reporter| Claimant { reporter, field: None };
        let add = |start, requested, usable, reporter| {
            quick.push(start, ExpectedSizes { requested, usable }, claimant(reporter))
        };
        assert!(!add(0x40, Some(20), 24, 1), "the claimant has no number yet");
        claimants.insert(claimant(1), 7);
        assert!(!add(0x40, Some(20), 24, 1), "there is no region yet");
        batch.set_region(Region::of(0x20));
        assert!(add(0x40, Some(20), 24, 1) && add(0x60, None, 24, 1));
        for (start, requested, usable, reporter) in [
            (0x80 + Region::BYTES, Some(20), 24, 1),
            (0x80 | 0xa5 << 56, Some(20), 24, 1),
            (0x81, Some(20), 24, 1),
            (0x80, Some(1 << 15), 1 << 15, 1),
            (0x80, Some(20), 147, 1),
            (0x80, Some(20), 19, 1),
            (0x80, Some(20), 24, 2),
        ] {
            assert!(!add(start, requested, usable, reporter), "{start:x} {requested:?} {usable}");
        }
        let found: Vec<_> = batch
            .words()
            .iter()
            .map(|word| {
                let short = ShortClaim { region: batch.region(), word: word.get() };
                let sizes = unpack_sizes(usize::try_from(short.sizes()).unwrap());
                (short.address(), sizes.requested, sizes.usable, short.claimant())
            })
            .collect();
        assert_eq!(found, [(0x40, Some(20), 24, 7), (0x60, None, 24, 7)]);
        let added = (0..100).filter(|index| add(0x100 + 32 * index, Some(20), 24, 1)).count();
        assert_eq!(added, ClaimBatch::WORDS - 2, "until the batch is full");
        batch.clear();
        assert!(add(0x40, Some(20), 24, 1));
    }
}

//! Checks the claims that the walk has added without a call.
//!
//! Where the table has every block, a claim of an address that is not in the copy is looked up: its
//! block was allocated during the collection, or the claim is wrong. Until a borrow ends, its
//! blocks live, so the claims are checked then, or earlier with a full batch.

use std::cell::Cell;

use memreport::__private::{
    Claim, ClaimBatch, Found, Place, Region, RegionBlocks, RegionNumber, ShortClaim, SizeCodes,
    unpack_sizes,
};

use super::ClaimBuffer;
use super::claimants::ClaimantId;
use super::packed::short_claim;
use super::starts::{Codes, UNIT};
use crate::collect::tracking;
use crate::table::BLOCKS;

/// The number of claims that stay unchecked when the batch is full: so many are made until what is
/// prefetched for a claim has arrived.
const NEWEST: usize = 16;

impl ClaimBuffer {
    /// Checks the claims that were added since this was called last. Called before the recorder
    /// itself adds any.
    #[inline]
    pub(super) fn check(&self) {
        let batch = self.packed.batch();
        if self.has_every_block && !batch.unchecked().is_empty() {
            let unknown = self.first_unknown(batch.unchecked());
            if unknown < batch.unchecked().len() {
                return self.check_each(unknown);
            }
        }
        batch.set_checked();
    }

    /// Makes room in a full batch: checks all claims but the newest, and appends the checked ones
    /// to the list. What the newest are compared with is on its way from memory.
    #[inline(never)]
    pub(super) fn check_oldest(&self) {
        let batch = self.packed.batch();
        if !self.has_every_block {
            batch.set_checked();
            return self.packed.flush_first(batch.checked());
        }
        let unchecked = batch.unchecked();
        let oldest = unchecked.get(..unchecked.len().saturating_sub(NEWEST)).unwrap_or(&[]);
        let unknown = self.first_unknown(oldest);
        if unknown < oldest.len() {
            self.check_each(unknown);
        } else {
            self.packed.flush_first(batch.checked() + oldest.len());
        }
    }

    /// Returns the index of the first of these words whose block is not in the copy; their number
    /// if there is none.
    // Not inlined: its values are in registers.
    #[inline(never)]
    fn first_unknown(&self, words: &[Cell<u64>]) -> usize {
        let regions = self.packed.regions();
        let first = words.first().map_or(0, Cell::get);
        let differences = words.iter().fold(0, |all, word| all | word.get() ^ first);
        let unknown = if RegionNumber::index_of(differences) == 0 {
            // Mostly all of them are of one region.
            let Some(starts) = self.starts.of(regions[RegionNumber::index_of(first)]) else {
                return 0;
            };
            let are_aligned = within(first | differences).is_multiple_of(UNIT);
            match <&Codes>::try_from(starts.known.codes) {
                Ok(codes) if are_aligned && are_in(codes, words) => None,
                _ => words.iter().position(|word| !is_in(starts.known, word.get())),
            }
        } else {
            let blocks = regions.map(|region| self.starts.of(region).map(|starts| starts.known));
            let is_unknown = |word: &Cell<u64>| {
                let blocks = blocks[RegionNumber::index_of(word.get())];
                !blocks.is_some_and(|blocks| is_in(blocks, word.get()))
            };
            words.iter().position(is_unknown)
        };
        unknown.unwrap_or(words.len())
    }

    /// Checks the claims from the first one that is not in the copy on.
    #[cold]
    fn check_each(&self, first: usize) {
        let batch = self.packed.batch();
        let mut words = [0; ClaimBatch::WORDS];
        let unchecked = batch.unchecked().get(first..).unwrap_or(&[]);
        let count = unchecked.len();
        words.iter_mut().zip(unchecked).for_each(|(copy, word)| *copy = word.get());
        batch.remove_last(count);
        batch.set_checked();
        let regions = self.packed.regions();
        for word in words.into_iter().take(count) {
            let short = short_claim(&regions, word);
            if self.starts.of(short.region).is_some_and(|starts| is_in(starts.known, word)) {
                self.packed.push(word);
            } else {
                self.claim_unknown(short, word);
            }
        }
    }

    /// Claims a block that was not there when the collection began, or adds a wrong claim. Its
    /// usable bytes are counted already.
    fn claim_unknown(&self, short: ShortClaim, word: u64) {
        let start = usize::try_from(short.address()).unwrap_or(usize::MAX);
        let sizes = unpack_sizes(usize::try_from(short.sizes()).unwrap_or(usize::MAX));
        let claimant = self.claimants.get(ClaimantId(short.claimant()));
        let Some(requested) = sizes.requested else { return self.packed.push(word) };
        if let Some(small) = BLOCKS.find_small(self.granule, start, requested) {
            if self.is_old(small.packed) {
                return self.packed.push(word);
            }
            return self.push_long(start, sizes.usable, claimant, 0);
        }
        let claim = Claim { address: start, size: Some(requested), place: Place::Start };
        let found = tracking::look_up_start(self.granule, claim);
        self.add_answered(claim, Found { bytes: sizes.usable, ..found }, claimant);
    }
}

/// Returns the offset of a short claim in its region.
#[inline(always)]
fn within(word: u64) -> usize {
    ShortClaim { region: Region(0), word }.within()
}

/// Returns whether blocks of a region start at the addresses of all these short claims, which are
/// multiples of 16.
#[inline(always)]
fn are_in(codes: &Codes, words: &[Cell<u64>]) -> bool {
    let is_in = |word: &Cell<u64>| {
        let code = codes.get(within(word.get()) / UNIT);
        code.is_some_and(|code| *code != SizeCodes::NO_BLOCK)
    };
    // In eights, so that the loop takes one step for eight of them.
    let (eights, rest) = words.as_chunks::<8>();
    eights.iter().all(|eight| eight.iter().all(is_in)) && rest.iter().all(is_in)
}

/// Returns whether a block starts at the address of a short claim.
#[inline(always)]
fn is_in(blocks: RegionBlocks<'_>, word: u64) -> bool {
    blocks.has(within(word))
}

#[cfg(test)]
mod tests {
    use memreport::__private::{Claimant, ExpectedSizes, Recorder, Wrong};

    use super::super::starts::Starts;
    use super::super::words::Allocated;
    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::stack::site::SiteId;
    use crate::table::blocks::Granule;
    use crate::table::epoch::Epoch;
    use crate::table::packed_block::Block;

    const GRANULE: Granule = Granule::OF_32;

    /// Claims blocks of 20 bytes at these addresses as the walk does, and returns the address of
    /// each claim by address, with what is known of it.
    fn claimed(
        starts: Starts,
        epoch: Epoch,
        addresses: &[usize],
    ) -> Vec<(usize, Allocated, Option<usize>, Option<Wrong>)> {
        let mut buffer = ClaimBuffer::new(GRANULE, epoch, 0, starts);
        buffer.has_every_block = true;
        let claimant = Claimant { reporter: 1, field: None };
        let sizes = ExpectedSizes { requested: Some(20), usable: 24 };
        for address in addresses {
            let quick = buffer.quick_claims().expect("the walk may add claims");
            quick.claimants.begin(claimant.reporter);
            if quick.batch.free().is_empty() {
                buffer.make_room();
            }
            if !quick.push(*address, sizes, claimant.field) {
                buffer.check_quick_claims();
                assert!(buffer.push_short(*address, sizes, claimant));
                // The recorder's own claim is replaced by one to be checked.
                buffer.packed.batch().remove_last(1);
                assert!(quick.push(*address, sizes, claimant.field));
            }
        }
        let log = buffer.into_log();
        assert!(log.sorted().iter().all(|claim| log.resolve(claim).bytes == 24));
        let claims = log.sorted().iter().map(|claim| log.resolve(claim));
        claims.map(|claim| (claim.address, claim.allocated, claim.requested, claim.wrong)).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "the copy of a region is large")]
    fn a_claim_of_a_block_that_is_not_in_the_copy_is_looked_up() {
        // Nothing else has the addresses of these blocks while they live.
        let memory = vec![[0_usize; 8]; 8];
        let start = memory.as_ptr().addr().next_multiple_of(32);
        let epoch = Epoch::FIRST.next();
        let block = |requested, epoch| {
            let (site, rate) = (SiteId::UNKNOWN, SamplingRate::EVERY);
            Block { requested, usable: 24, site, epoch, rate, time: 0 }
        };
        let [known, old, new, partial, none, inside] =
            [start, start + 32, start + 64, start + 96, start + 128, start + 8];
        BLOCKS.insert(GRANULE, known, block(20, Epoch::FIRST));
        BLOCKS.insert(GRANULE, old, block(20, Epoch::FIRST));
        BLOCKS.insert(GRANULE, new, block(20, epoch));
        BLOCKS.insert(GRANULE, partial, block(24, epoch));
        let copy = || {
            let mut copy = Starts::new(GRANULE);
            copy.insert(known, 24);
            copy
        };
        let unchecked = |address| (address, Allocated::Unknown, Some(20), None);
        let wrong = |address, wrong| (address, Allocated::During, None, Some(wrong));
        let all = [known, old, new, known, partial, none, inside];
        let expected = [
            unchecked(known),
            unchecked(known),
            wrong(inside, Wrong::Interior),
            unchecked(old),
            (new, Allocated::During, None, None),
            wrong(partial, Wrong::Partial),
            wrong(none, Wrong::NonHeap),
        ];
        assert_eq!(claimed(copy(), epoch, &all), expected);
        const MANY: usize = 3 * ClaimBatch::WORDS;
        for unknown in [0, 1, 46, 47, 48, 62, 63, 64, 100, MANY - 1] {
            let mut many = [known; MANY];
            many[unknown] = inside;
            let mut expected = many.map(unchecked);
            expected[unknown..].rotate_left(1);
            expected[MANY - 1] = wrong(inside, Wrong::Interior);
            assert_eq!(claimed(copy(), epoch, &many), expected, "{unknown}");
        }
        // Claims of two regions take turns.
        let other = start.wrapping_add(Region::BYTES);
        let mut of_both = copy();
        of_both.insert(other, 24);
        let missing = other + 32;
        let expected =
            [unchecked(known), unchecked(known), unchecked(other), wrong(missing, Wrong::NonHeap)];
        assert_eq!(claimed(of_both, epoch, &[known, other, missing, known]), expected);
        for address in [known, old, new, partial] {
            BLOCKS.remove(GRANULE, address);
        }
        drop(memory);
    }
}

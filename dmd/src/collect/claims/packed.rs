//! Claims in the order in which they are made, nearly all in one word.
//!
//! The time of a collection is mostly the memory traffic of its claims, hence one word.
//!
//! ```text
//! a short claim  bits 0-28    the address within its region, divided by 8
//!                bits 29-46   the bytes
//!                bit 47       old
//!                bits 48-62   the claimant
//!                bit 63       0
//! a region       bits 0-61    the upper half of the addresses of the short claims that follow
//!                bits 62-63   3
//! a long claim   bits 62-63   2, followed by the two words of the claim
//! ```
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]

use super::claimants::ClaimantId;
use super::words::{self, ClaimWords};
use crate::mem::pages::PageList;

/// The number of address bits within a region.
const REGION_BITS: u32 = 32;

/// Addresses of short claims are multiples of this power of two.
const ALIGNMENT_BITS: u32 = 3;

const BYTES_SHIFT: u32 = REGION_BITS - ALIGNMENT_BITS;
const OLD_SHIFT: u32 = 47;
const CLAIMANT_SHIFT: u32 = 48;
const FORM_SHIFT: u32 = 62;

const BYTES_BITS: u32 = OLD_SHIFT - BYTES_SHIFT;
const CLAIMANT_BITS: u32 = FORM_SHIFT + 1 - CLAIMANT_SHIFT;

const LONG: u64 = 2;
const REGION: u64 = 3;

/// A region that contains no address.
const NO_REGION: u64 = u64::MAX;

/// Packed claims in the order in which they were made.
#[derive(Debug)]
pub(crate) struct PackedClaims {
    words: PageList<u64>,
    /// The region of the last short claim.
    region: u64,
}

/// A claim in one word, and its region.
#[derive(Clone, Copy)]
pub(crate) struct ShortClaim {
    region: u64,
    word: u64,
}

impl ShortClaim {
    /// Packs a claim into one word; `None` if it does not fit. `flags` are bits of the second word
    /// of [`ClaimWords`].
    #[inline]
    pub(crate) fn of(
        address: usize,
        bytes: usize,
        claimant: ClaimantId,
        flags: u64,
    ) -> Option<Self> {
        let (address, bytes, claimant) = (address as u64, bytes as u64, u64::from(claimant.0));
        let is_aligned = address & ((1 << ALIGNMENT_BITS) - 1) == 0;
        let is_short = bytes >> BYTES_BITS == 0 && claimant >> CLAIMANT_BITS == 0;
        if !is_aligned || !is_short || flags & !words::OLD != 0 {
            return None;
        }
        let within = (address & ((1 << REGION_BITS) - 1)) >> ALIGNMENT_BITS;
        let old_bit = u64::from(flags != 0);
        let word =
            within | bytes << BYTES_SHIFT | old_bit << OLD_SHIFT | claimant << CLAIMANT_SHIFT;
        Some(ShortClaim { region: address >> REGION_BITS, word })
    }
}

impl PackedClaims {
    /// Creates a list with room for so many short claims.
    pub(crate) fn with_room(claims: usize) -> Self {
        PackedClaims { words: PageList::with_capacity(claims), region: NO_REGION }
    }

    /// Adds a claim. If memory is short, counts it as lost and returns false.
    #[inline]
    pub(crate) fn push(&mut self, short: ShortClaim) -> bool {
        if short.region == self.region {
            self.words.push_prefetched(short.word)
        } else {
            self.push_in_new_region(short)
        }
    }

    #[cold]
    fn push_in_new_region(&mut self, short: ShortClaim) -> bool {
        let pushed = self.words.push_all(&[REGION << FORM_SHIFT | short.region, short.word]);
        if pushed {
            self.region = short.region;
        }
        pushed
    }

    /// Adds a claim that does not fit into one word. If memory is short, counts it as lost and
    /// returns false.
    #[cold]
    pub(crate) fn push_long(&mut self, claim: ClaimWords) -> bool {
        self.words.push_all(&[LONG << FORM_SHIFT, claim[0], claim[1]])
    }

    /// Returns the position of the next claim, for [`truncate`](Self::truncate).
    pub(crate) fn position(&self) -> usize {
        self.words.as_slice().len()
    }

    /// Removes the claims from this position on.
    pub(crate) fn truncate(&mut self, position: usize) {
        self.words.truncate(position);
        self.region = NO_REGION;
    }

    /// Returns the number of claims that were lost because memory was short.
    pub(crate) fn lost(&self) -> usize {
        self.words.lost
    }

    /// Unpacks the claims in their order.
    pub(crate) fn iter(&self) -> Unpacked<'_> {
        Unpacked { words: self.words.as_slice().iter(), region: 0 }
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
        let address = self.region | cut(0, BYTES_SHIFT) << ALIGNMENT_BITS;
        let flags = if cut(OLD_SHIFT, 1) == 0 { 0 } else { words::OLD };
        let claimant = ClaimantId(cut(CLAIMANT_SHIFT, CLAIMANT_BITS) as u32);
        [address, words::second_word(cut(BYTES_SHIFT, BYTES_BITS), claimant, flags)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_and_unpacking_round_trips() {
        let addresses = [0x10, 0x7fff_ffff_fff8, 0x7fff_0000_0000, 0x18, 0x1c, usize::MAX, 0x20];
        let claimants = [0, 1, (1 << CLAIMANT_BITS) - 1, 1 << CLAIMANT_BITS].map(ClaimantId);
        let mut packed = PackedClaims::with_room(10);
        let (mut expected, mut shorts) = (Vec::new(), 0);
        for address in addresses {
            for bytes in [0, 24, (1 << BYTES_BITS) - 1, 1 << BYTES_BITS] {
                for (claimant, flags) in claimants.into_iter().zip([0, words::OLD, 1 << 34, 0]) {
                    let claim = [address as u64, words::second_word(bytes as u64, claimant, flags)];
                    expected.push(claim);
                    match ShortClaim::of(address, bytes, claimant, flags) {
                        Some(short) => {
                            shorts += 1;
                            assert!(packed.push(short));
                        }
                        None => assert!(packed.push_long(claim)),
                    }
                }
            }
        }
        assert_eq!(shorts, 5 * 3 * 2, "aligned, few bytes, a small claimant number, nothing wrong");
        assert_eq!(packed.iter().collect::<Vec<_>>(), expected);
        assert_eq!(packed.lost(), 0);
    }

    #[test]
    fn after_a_roll_back_a_region_is_written_again() {
        let short = |address| ShortClaim::of(address, 8, ClaimantId(1), 0).unwrap();
        let mut packed = PackedClaims::with_room(0);
        packed.push(short(0x1_0000_0000));
        let position = packed.position();
        packed.push(short(0x2_0000_0000));
        packed.truncate(position);
        packed.push(short(0x2_0000_0010));
        packed.push(short(0x1_0000_0020));
        let addresses: Vec<_> = packed.iter().map(|claim| claim[0]).collect();
        assert_eq!(addresses, [0x1_0000_0000, 0x2_0000_0010, 0x1_0000_0020]);
    }
}

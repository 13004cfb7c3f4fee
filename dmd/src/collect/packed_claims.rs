//! ClaimBuffer as they are written: nearly all in one word, since what a collection takes is mostly the memory that it writes.
//!
//! ```text
//! a short mark   bits 0-28    the address within its region, in eights
//!                bits 29-46   the bytes
//!                bit 47       old
//!                bits 48-62   the claimant
//!                bit 63       0
//! a region       bits 0-61    the upper half of the addresses of the short marks behind it
//!                bits 62-63   3
//! a long mark    bits 62-63   2, and the two words of a line behind it
//! ```
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]

use super::claim_words::{self, ClaimWords};
use super::claimants::ClaimantId;
use crate::mem::pages::PageList;

/// How many addresses a region has.
const REGION_BITS: u32 = 32;

/// What addresses of short marks are multiples of.
const ALIGNED_BITS: u32 = 3;

const BYTES: u32 = REGION_BITS - ALIGNED_BITS;
const OLD: u32 = 47;
const CLAIMANT: u32 = 48;
const FORM: u32 = 62;

const BYTES_BITS: u32 = OLD - BYTES;
const CLAIMANT_BITS: u32 = FORM + 1 - CLAIMANT;

const LONG: u64 = 2;
const REGION: u64 = 3;

/// A region that no address is in.
const NOWHERE: u64 = u64::MAX;

/// ClaimBuffer in the order in which they were made.
#[derive(Debug)]
pub(crate) struct Packed {
    words: PageList<u64>,
    /// That of the last short mark.
    region: u64,
}

/// A mark in one word, but for its region.
#[derive(Clone, Copy)]
pub(crate) struct ShortClaim {
    region: u64,
    word: u64,
}

impl ShortClaim {
    /// `None` if the word is too short for it. `says` is what a line says of it beside the bytes and the claimant.
    #[inline]
    pub(crate) fn of(
        address: usize,
        bytes: usize,
        claimant: ClaimantId,
        says: u64,
    ) -> Option<Self> {
        let (address, bytes, claimant) = (address as u64, bytes as u64, u64::from(claimant.0));
        let is_aligned = address & ((1 << ALIGNED_BITS) - 1) == 0;
        let is_short = bytes >> BYTES_BITS == 0 && claimant >> CLAIMANT_BITS == 0;
        if !is_aligned || !is_short || says & !claim_words::OLD != 0 {
            return None;
        }
        let within = (address & ((1 << REGION_BITS) - 1)) >> ALIGNED_BITS;
        let old = u64::from(says != 0);
        let word = within | bytes << BYTES | old << OLD | claimant << CLAIMANT;
        Some(ShortClaim { region: address >> REGION_BITS, word })
    }
}

impl Packed {
    /// With room for so many short marks at first.
    pub(crate) fn with_room(marks: usize) -> Self {
        Packed { words: PageList::with_capacity(marks), region: NOWHERE }
    }

    /// Adds a mark; `false`, and counted as lost, when memory is short.
    #[inline]
    pub(crate) fn push(&mut self, short: ShortClaim) -> bool {
        if short.region == self.region {
            self.words.push_prefetched(short.word)
        } else {
            self.push_elsewhere(short)
        }
    }

    #[cold]
    fn push_elsewhere(&mut self, short: ShortClaim) -> bool {
        let is_there = self.words.push_all(&[REGION << FORM | short.region, short.word]);
        if is_there {
            self.region = short.region;
        }
        is_there
    }

    /// As [`push`](Self::push), for any mark.
    #[cold]
    pub(crate) fn push_line(&mut self, line: ClaimWords) -> bool {
        self.words.push_all(&[LONG << FORM, line[0], line[1]])
    }

    /// Where the next mark will be.
    pub(crate) fn position(&self) -> usize {
        self.words.as_slice().len()
    }

    /// Forgets the marks from this position on.
    pub(crate) fn truncate(&mut self, position: usize) {
        self.words.truncate(position);
        self.region = NOWHERE;
    }

    /// ClaimBuffer that memory was short for.
    pub(crate) fn lost(&self) -> usize {
        self.words.lost
    }

    /// The marks, as lines.
    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines { words: self.words.as_slice().iter(), region: 0 }
    }
}

/// Packed marks one after another.
#[derive(Clone, Debug)]
pub(crate) struct Lines<'p> {
    words: std::slice::Iter<'p, u64>,
    /// The first address of the region.
    region: u64,
}

impl Iterator for Lines<'_> {
    type Item = ClaimWords;

    #[inline]
    fn next(&mut self) -> Option<ClaimWords> {
        loop {
            let word = *self.words.next()?;
            match word >> FORM {
                REGION => self.region = word << REGION_BITS,
                LONG => return Some([*self.words.next()?, *self.words.next()?]),
                _ => return Some(self.line(word)),
            }
        }
    }
}

impl Lines<'_> {
    #[inline]
    fn line(&self, word: u64) -> ClaimWords {
        let cut = |from: u32, bits: u32| word >> from & ((1 << bits) - 1);
        let address = self.region | cut(0, BYTES) << ALIGNED_BITS;
        let says = if cut(OLD, 1) == 0 { 0 } else { claim_words::OLD };
        let claimant = ClaimantId(cut(CLAIMANT, CLAIMANT_BITS) as u32);
        [address, claim_words::second_word(cut(BYTES, BYTES_BITS), claimant, says)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_as_they_went_in() {
        let addresses = [0x10, 0x7fff_ffff_fff8, 0x7fff_0000_0000, 0x18, 0x1c, usize::MAX, 0x20];
        let claimants = [0, 1, (1 << CLAIMANT_BITS) - 1, 1 << CLAIMANT_BITS].map(ClaimantId);
        let mut packed = Packed::with_room(10);
        let (mut expected, mut shorts) = (Vec::new(), 0);
        for address in addresses {
            for bytes in [0, 24, (1 << BYTES_BITS) - 1, 1 << BYTES_BITS] {
                for (claimant, says) in claimants.into_iter().zip([0, claim_words::OLD, 1 << 34, 0])
                {
                    let line =
                        [address as u64, claim_words::second_word(bytes as u64, claimant, says)];
                    expected.push(line);
                    match ShortClaim::of(address, bytes, claimant, says) {
                        Some(short) => {
                            shorts += 1;
                            assert!(packed.push(short));
                        }
                        None => assert!(packed.push_line(line)),
                    }
                }
            }
        }
        assert_eq!(shorts, 5 * 3 * 2, "of aligned ones, few bytes, and who claims what is right");
        assert_eq!(packed.lines().collect::<Vec<_>>(), expected);
        assert_eq!(packed.lost(), 0);
    }

    #[test]
    fn what_follows_forgotten_marks_has_its_own_region() {
        let short = |address| ShortClaim::of(address, 8, ClaimantId(1), 0).unwrap();
        let mut packed = Packed::with_room(0);
        packed.push(short(0x1_0000_0000));
        let position = packed.position();
        packed.push(short(0x2_0000_0000));
        packed.truncate(position);
        packed.push(short(0x2_0000_0010));
        packed.push(short(0x1_0000_0020));
        let addresses: Vec<_> = packed.lines().map(|line| line[0]).collect();
        assert_eq!(addresses, [0x1_0000_0000, 0x2_0000_0010, 0x1_0000_0020]);
    }
}

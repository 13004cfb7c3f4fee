//! A claim as two words, ready to be sorted by address.

use memreport::__private::Wrong;

use super::claimants::ClaimantId;

/// A claim, and what the table says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedClaim {
    /// The start of the block, or the claimed address where there is none.
    pub(crate) address: usize,
    /// True if it is about a block that lived before the collection; a later one at its address did
    /// not.
    pub(crate) is_old: bool,
    /// The bytes that were added to the report.
    pub(crate) bytes: usize,
    pub(crate) claimant: ClaimantId,
    pub(crate) wrong: Option<Wrong>,
}

/// A claim in two words.
///
/// ```text
/// word 0               the address
/// word 1, bits 0-31    the bytes   } or, for a large block, the index of its bytes in a list
/// word 1, bit 32       large       }
/// word 1, bit 33       old
/// word 1, bits 34-36   what is wrong
/// word 1, bits 37-63   the claimant
/// ```
pub(crate) type ClaimWords = [u64; 2];

pub(super) const LARGE: u64 = 1 << 32;
pub(crate) const OLD: u64 = 1 << 33;
pub(super) const WRONG: u32 = 34;
pub(super) const CLAIMANT: u32 = 37;
pub(super) const CLAIMANTS: u32 = 1 << (u64::BITS - CLAIMANT);

/// Returns the second word of a claim.
#[inline]
pub(crate) fn second_word(bytes: u64, claimant: ClaimantId, flags: u64) -> u64 {
    bytes | u64::from(claimant.0) << CLAIMANT | flags
}

/// What can be wrong with a claim, by number.
pub(super) const WRONGS: [Option<Wrong>; 5] = [
    None,
    Some(Wrong::NonHeap),
    Some(Wrong::Interior),
    Some(Wrong::Partial),
    Some(Wrong::Untracked),
];

/// Returns the address of a claim.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was an address")]
pub(crate) fn address(line: &ClaimWords) -> usize {
    line[0] as usize
}

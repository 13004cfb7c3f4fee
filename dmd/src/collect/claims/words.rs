//! A claim in two words, ready to be sorted by address.

use memreport::__private::Wrong;

use super::claimants::ClaimantId;

/// A claim together with the table's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedClaim {
    /// The start of the block, or the claimed address if no block starts there.
    pub(crate) address: usize,
    /// True if the claimed block was allocated before the collection. A newer block may have the
    /// same address.
    pub(crate) is_old: bool,
    /// The bytes that the claim added to its report.
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
/// word 1, bits 34-36   the error
/// word 1, bits 37-63   the claimant
/// ```
pub(crate) type ClaimWords = [u64; 2];

pub(super) const LARGE: u64 = 1 << 32;
pub(super) const OLD: u64 = 1 << 33;
pub(super) const WRONG_SHIFT: u32 = 34;
pub(super) const CLAIMANT_SHIFT: u32 = 37;
pub(super) const MAX_CLAIMANTS: u32 = 1 << (u64::BITS - CLAIMANT_SHIFT);

/// Returns the second word of a claim.
#[inline]
pub(super) fn second_word(bytes: u64, claimant: ClaimantId, flags: u64) -> u64 {
    bytes | u64::from(claimant.0) << CLAIMANT_SHIFT | flags
}

/// The errors of a claim, by their number in the word.
pub(super) const WRONG_KINDS: [Option<Wrong>; 5] = [
    None,
    Some(Wrong::NonHeap),
    Some(Wrong::Interior),
    Some(Wrong::Partial),
    Some(Wrong::Untracked),
];

/// Returns the address of a claim.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it was an address")]
pub(crate) fn address_of(claim: &ClaimWords) -> usize {
    claim[0] as usize
}

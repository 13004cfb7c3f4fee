//! A claim in two words, ready to be sorted by address.

use memreport::__private::Wrong;

use super::claimants::ClaimantId;

/// A claim together with the table's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedClaim {
    /// The start of the block, or the claimed address if no block starts there.
    pub(crate) address: usize,
    /// When the claimed block was allocated. A newer block may have the same address.
    pub(crate) allocated: Allocated,
    /// The bytes that the claim added to its report.
    pub(crate) bytes: usize,
    /// The size that the block was allocated with, as the reporter has it, if that has not been
    /// compared with the table.
    pub(crate) requested: Option<usize>,
    pub(crate) claimant: ClaimantId,
    pub(crate) wrong: Option<Wrong>,
}

/// The time of a claimed block's allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocated {
    /// Before the collection.
    Before,
    /// After it began, or no block was found.
    During,
    /// Unknown: the claim was not looked up.
    Unknown,
}

/// A claim in two words.
///
/// ```text
/// word 0               the address
/// word 1, bits 0-31    the bytes; of a large block, the index of its bytes in a list;
///                      of an expected one, its sizes (`pack_sizes` of memreport)
/// word 1, bit 32       large
/// word 1, bit 33       old
/// word 1, bit 34       expected: it was not looked up
/// word 1, bits 35-37   the error
/// word 1, bits 38-63   the claimant
/// ```
pub(crate) type ClaimWords = [u64; 2];

pub(super) const LARGE: u64 = 1 << 32;
pub(super) const OLD: u64 = 1 << 33;
pub(super) const EXPECTED: u64 = 1 << 34;
pub(super) const WRONG_SHIFT: u32 = 35;
pub(super) const CLAIMANT_SHIFT: u32 = 38;
pub(super) const MAX_CLAIMANTS: u32 = 1 << (u64::BITS - CLAIMANT_SHIFT);

/// Returns the second word of a claim. `bytes` are its bits 0 to 31.
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

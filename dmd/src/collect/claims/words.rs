//! A claim in two words, ready to be sorted by address.

use memreport::__private::{ExpectedSizes, KnownSizes, Wrong};

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
///                      of an expected one, its sizes (`pack_sizes`)
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

/// The number of bits of the requested bytes in an expected claim.
const REQUESTED_BITS: u32 = 15;

/// The number of bits of the slop in an expected claim.
const SLOP_BITS: u32 = 7;

/// The number of bits of an expected claim's sizes.
pub(super) const SIZES_BITS: u32 = REQUESTED_BITS + SLOP_BITS;

/// The slop that stands for unknown requested bytes. The usable ones are in their place.
const UNKNOWN: usize = (1 << SLOP_BITS) - 1;

/// Packs the sizes of an expected claim: the requested bytes in the lower bits, the slop above.
/// Returns `None` if they do not fit.
#[inline(always)]
pub(super) fn pack_sizes(sizes: ExpectedSizes) -> Option<u64> {
    let (lower, slop, most) = match sizes.requested {
        Some(requested) => (requested, sizes.usable.wrapping_sub(requested), UNKNOWN - 1),
        None => (sizes.usable, UNKNOWN, UNKNOWN),
    };
    let fits = lower >> REQUESTED_BITS == 0 && slop <= most;
    fits.then_some((lower | slop << REQUESTED_BITS) as u64)
}

/// Packs the sizes of a block that is claimed at once, as [`pack_sizes`] does.
#[inline(always)]
pub(super) fn pack_known_sizes(KnownSizes { bytes, slop }: KnownSizes) -> Option<u64> {
    // An unknown slop is the largest number: 0 if 1 is added, and `UNKNOWN` in its lowest bits.
    const { assert!(KnownSizes::UNKNOWN == usize::MAX && UNKNOWN.count_ones() == SLOP_BITS) };
    let fits = bytes >> REQUESTED_BITS == 0 && slop.wrapping_add(1) <= UNKNOWN;
    fits.then_some((bytes | (slop & UNKNOWN) << REQUESTED_BITS) as u64)
}

/// Packs sizes that are known to fit.
#[inline(always)]
pub(super) fn pack_fitting(requested: usize, usable: usize) -> u64 {
    (requested | (usable - requested) << REQUESTED_BITS) as u64
}

/// Unpacks the sizes that [`pack_sizes`] has packed.
#[inline]
pub(super) fn unpack_sizes(packed: usize) -> ExpectedSizes {
    let (lower, slop) = (packed & ((1 << REQUESTED_BITS) - 1), packed >> REQUESTED_BITS);
    match slop {
        UNKNOWN => ExpectedSizes { requested: None, usable: lower },
        slop => ExpectedSizes { requested: Some(lower), usable: lower + slop },
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_both_forms_are_packed_alike() {
        for (requested, usable) in [
            (Some(0), 0),
            (Some(1), 127),
            (Some(1), 128),
            (Some(20), 19),
            (Some(32_767), 32_767),
            (Some(32_768), 32_768),
            (None, 0),
            (None, 32_767),
            (None, 32_768),
        ] {
            let sizes = ExpectedSizes { requested, usable };
            let known = match requested {
                Some(bytes) => {
                    let slop = usable.checked_sub(bytes).unwrap_or(KnownSizes::UNKNOWN - 1);
                    KnownSizes { bytes, slop }
                }
                None => KnownSizes { bytes: usable, slop: KnownSizes::UNKNOWN },
            };
            let packed = pack_sizes(sizes);
            assert_eq!(pack_known_sizes(known), packed, "{sizes:?}");
            let unpacked = packed.map(|packed| unpack_sizes(usize::try_from(packed).unwrap()));
            assert!(unpacked.is_none_or(|unpacked| unpacked == sizes));
        }
    }
}

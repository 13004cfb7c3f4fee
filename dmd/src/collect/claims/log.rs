//! All claims of a collection, sorted by address.

use memreport::__private::{ExpectedSizes, unpack_sizes};
use memreport::Field;

use super::claimants::{ClaimantId, Claimants};
use super::words::{
    Allocated, CLAIMANT_SHIFT, ClaimWords, EXPECTED, LARGE, OLD, ResolvedClaim, WRONG_KINDS,
    WRONG_SHIFT, address_of,
};
use crate::collect::holders::reached::Roots;
use crate::collect::holders::skipped::SkippedPointers;
use crate::mem::pages::PageList;

/// All claims of one collection, sorted by address.
#[derive(Debug)]
pub(crate) struct ClaimLog {
    /// Invariant: claims of one address are in the order in which they were made.
    pub(super) sorted: PageList<ClaimWords>,
    pub(super) large: PageList<usize>,
    pub(super) lost: usize,
    pub(crate) claimants: Claimants,
    /// The fields that reporters visited or skipped.
    pub(crate) fields: PageList<&'static Field>,
    pub(crate) skipped: SkippedPointers,
    pub(crate) roots: Roots,
}

impl ClaimLog {
    /// Returns the claims, sorted by address.
    pub(crate) fn sorted(&self) -> &[ClaimWords] {
        self.sorted.as_slice()
    }

    /// Unpacks the two words of a claim.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]
    pub(crate) fn resolve(&self, claim: &ClaimWords) -> ResolvedClaim {
        let number = claim[1] as u32 as usize;
        let is_expected = claim[1] & EXPECTED != 0;
        let (requested, bytes) = if is_expected {
            let ExpectedSizes { requested, usable } = unpack_sizes(number);
            (requested, usable)
        } else if claim[1] & LARGE != 0 {
            (None, self.large.as_slice().get(number).copied().unwrap_or(0))
        } else {
            (None, number)
        };
        let allocated = match claim[1] & OLD != 0 {
            _ if is_expected => Allocated::Unknown,
            true => Allocated::Before,
            false => Allocated::During,
        };
        ResolvedClaim {
            address: address_of(claim),
            allocated,
            bytes,
            requested,
            claimant: ClaimantId((claim[1] >> CLAIMANT_SHIFT) as u32),
            wrong: WRONG_KINDS.get((claim[1] >> WRONG_SHIFT) as usize & 7).copied().flatten(),
        }
    }

    /// Returns the number of claims that were dropped because memory was short.
    pub(crate) fn lost(&self) -> usize {
        self.lost
    }
}

//! The claimant of the last claim, so that the next one of the same claimant needs no look-up.

use std::cell::Cell;

use memreport::__private::Claimant;

use super::claimants::{ClaimantId, address};
use super::packed::ClaimantBits;

/// The last claimant.
#[derive(Debug)]
pub(super) struct LastClaimant {
    /// The address of its field; `usize::MAX` if there is none whose bits fit.
    field: Cell<usize>,
    reporter: Cell<u32>,
    bits: Cell<ClaimantBits>,
}

impl LastClaimant {
    pub(super) fn none() -> Self {
        LastClaimant {
            field: Cell::new(usize::MAX),
            reporter: Cell::new(0),
            bits: Cell::new(ClaimantBits::ZERO),
        }
    }

    /// Returns the bits of a claimant in short claims, if it is the last one.
    #[inline(always)]
    pub(super) fn bits(&self, Claimant { field, reporter }: Claimant) -> Option<ClaimantBits> {
        let is_last = self.field.get() == address(field) && self.reporter.get() == reporter;
        is_last.then(|| self.bits.get())
    }

    /// Makes a claimant the last one.
    pub(super) fn set(&self, Claimant { field, reporter }: Claimant, id: ClaimantId) {
        let bits = ClaimantBits::of(id);
        self.field.set(if bits.is_some() { address(field) } else { usize::MAX });
        self.reporter.set(reporter);
        self.bits.set(bits.unwrap_or(ClaimantBits::ZERO));
    }
}

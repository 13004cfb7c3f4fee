//! The source of a claim, and the numbers that a recorder gives the last ones.

use core::cell::Cell;

use super::short_claim::ClaimantBits;
use crate::field::Field;

/// The source of a claim: a reporter and a field.
#[derive(Clone, Copy, Debug)]
pub struct Claimant {
    /// The number of the reporter in this collection.
    pub reporter: u32,
    /// The innermost field of a derived type that led to the block.
    pub field: Option<&'static Field>,
}

/// A direct-mapped cache of claimants' numbers, by the field's address.
#[derive(Debug)]
pub struct RecentClaimants([Cell<Recent>; 64]);

/// A slot of the cache.
#[derive(Clone, Copy, Debug)]
struct Recent {
    /// The address of the field, or 0; `usize::MAX` in an unused slot.
    field: usize,
    reporter: u32,
    number: u32,
}

impl RecentClaimants {
    /// Creates an empty cache.
    #[must_use]
    pub const fn new() -> Self {
        const UNUSED: Recent = Recent { field: usize::MAX, reporter: 0, number: 0 };
        RecentClaimants([const { Cell::new(UNUSED) }; 64])
    }

    /// Returns the number of a claimant; `None` if its slot holds another one.
    #[inline(always)]
    #[must_use]
    pub fn number(&self, claimant: Claimant) -> Option<u32> {
        let (slot, field) = self.slot(claimant);
        let recent = slot.get();
        let is_it = recent.field == field && recent.reporter == claimant.reporter;
        is_it.then_some(recent.number)
    }

    /// Returns the bits of a claimant's short claims; `None` if its slot holds another one, or its
    /// number does not fit.
    #[inline(always)]
    #[must_use]
    pub fn bits(&self, claimant: Claimant) -> Option<ClaimantBits> {
        self.number(claimant).and_then(ClaimantBits::of)
    }

    /// Inserts a claimant, in place of the one in its slot.
    pub fn insert(&self, claimant: Claimant, number: u32) {
        let (slot, field) = self.slot(claimant);
        slot.set(Recent { field, reporter: claimant.reporter, number });
    }

    #[inline(always)]
    fn slot(&self, claimant: Claimant) -> (&Cell<Recent>, usize) {
        let field = claimant.field.map_or(0, |field| core::ptr::from_ref(field).addr());
        (&self.0[field / align_of::<Field>() % self.0.len()], field)
    }
}

impl Default for RecentClaimants {
    fn default() -> Self {
        RecentClaimants::new()
    }
}

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

/// A direct-mapped cache of one reporter's claimants, by the field's address.
#[derive(Debug)]
pub struct RecentClaimants {
    reporter: Cell<u32>,
    slots: [Cell<Recent>; 64],
}

/// A slot of the cache.
#[derive(Clone, Copy, Debug)]
struct Recent {
    /// The address of the field, or 0; `usize::MAX` in an unused slot.
    field: usize,
    bits: ClaimantBits,
}

impl Recent {
    const UNUSED: Self = Recent { field: usize::MAX, bits: ClaimantBits::ZERO };
}

impl RecentClaimants {
    /// Creates an empty cache, of the reporter with number 0.
    #[must_use]
    pub const fn new() -> Self {
        let slots = [const { Cell::new(Recent::UNUSED) }; 64];
        RecentClaimants { reporter: Cell::new(0), slots }
    }

    /// Empties the cache, unless it is already this reporter's.
    pub fn begin(&self, reporter: u32) {
        if self.reporter.replace(reporter) != reporter {
            self.slots.iter().for_each(|slot| slot.set(Recent::UNUSED));
        }
    }

    /// Returns the cache, if it is this reporter's.
    #[inline]
    #[must_use]
    pub fn of_reporter(&self, reporter: u32) -> Option<&Self> {
        (self.reporter.get() == reporter).then_some(self)
    }

    /// Returns the bits of short claims of the cache's reporter through this field; `None` if the
    /// field's slot holds another one.
    #[inline(always)]
    #[must_use]
    pub fn bits(&self, field: Option<&'static Field>) -> Option<ClaimantBits> {
        let (slot, field) = self.slot(field);
        let recent = slot.get();
        (recent.field == field).then_some(recent.bits)
    }

    /// Returns the bits of a claimant's short claims; `None` if it is another reporter's, or its
    /// slot holds another one.
    #[inline(always)]
    #[must_use]
    pub fn bits_of(&self, claimant: Claimant) -> Option<ClaimantBits> {
        self.of_reporter(claimant.reporter)?.bits(claimant.field)
    }

    /// Inserts a claimant, in place of the one in its slot, unless it is another reporter's.
    pub fn insert(&self, claimant: Claimant, bits: ClaimantBits) {
        if claimant.reporter == self.reporter.get() {
            let (slot, field) = self.slot(claimant.field);
            slot.set(Recent { field, bits });
        }
    }

    #[inline(always)]
    fn slot(&self, field: Option<&'static Field>) -> (&Cell<Recent>, usize) {
        let field = field.map_or(0, |field| core::ptr::from_ref(field).addr());
        (&self.slots[field / align_of::<Field>() % self.slots.len()], field)
    }
}

impl Default for RecentClaimants {
    fn default() -> Self {
        RecentClaimants::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_has_claimants_of_one_reporter_alone() {
        static FIELD: Field = Field::of::<u8>("field", file!(), line!());
        let recent = RecentClaimants::new();
        let claimant = |reporter, field| Claimant { reporter, field };
        let [seven, nine] = [7, 9].map(|number| ClaimantBits::of(number).expect("it fits"));
        // They may have the same slot.
        for (field, bits, other) in [(None, seven, nine), (Some(&FIELD), nine, seven)] {
            recent.begin(3);
            recent.insert(claimant(3, field), bits);
            assert_eq!(recent.bits(field), Some(bits));
            recent.begin(3);
            assert_eq!(recent.bits_of(claimant(3, field)), Some(bits));
            assert_eq!(recent.bits_of(claimant(4, field)), None);
            recent.insert(claimant(4, field), other);
            assert_eq!(recent.bits(field), Some(bits), "the other reporter's is left out");
            recent.begin(4);
            assert_eq!(recent.bits(field), None);
        }
        assert_eq!((seven.number(), nine.number()), (7, 9));
    }
}

//! Numbers for claimants: a reporter together with the field through which it reached a block.

use std::cell::RefCell;

use memreport::__private::{Claimant, ClaimantBits, RecentClaimants};
use memreport::Field;

use crate::mem::local_interner::LocalInterner;
use crate::mem::pages::PageList;

/// The number of a claimant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimantId(pub(crate) u32);

/// The claimants of one collection.
#[derive(Debug)]
pub(crate) struct Claimants {
    list: RefCell<List>,
    limit: u32,
    recent: RecentClaimants,
}

/// The claimants by number.
#[derive(Debug)]
struct List {
    /// The reporter, and the address of the field or 0.
    numbers: LocalInterner<(u32, u64)>,
    fields: PageList<Option<&'static Field>>,
}

impl Claimants {
    /// Creates an empty list that takes at most `limit` claimants.
    pub(crate) fn with_limit(limit: u32) -> Self {
        Claimants {
            list: RefCell::new(List { numbers: LocalInterner::new(), fields: PageList::new() }),
            limit,
            recent: RecentClaimants::new(),
        }
    }

    /// Returns the number of a claimant; `None` if memory is short or the limit is reached.
    #[inline]
    pub(crate) fn id(&self, claimant: Claimant) -> Option<ClaimantId> {
        let recent = self.recent.bits_of(claimant);
        recent.map(|bits| ClaimantId(bits.number())).or_else(|| self.find_or_insert(claimant))
    }

    /// Returns the last claimants.
    pub(crate) fn recent(&self) -> &RecentClaimants {
        &self.recent
    }

    #[cold]
    fn find_or_insert(&self, claimant: Claimant) -> Option<ClaimantId> {
        let field = address(claimant.field);
        let List { numbers, fields } = &mut *self.list.borrow_mut();
        let number = numbers.intern((claimant.reporter, field as u64))?;
        if number as usize == fields.as_slice().len() && !fields.push(claimant.field) {
            return None;
        }
        if number >= self.limit {
            return None;
        }
        if let Some(bits) = ClaimantBits::of(number) {
            self.recent.insert(claimant, bits);
        }
        Some(ClaimantId(number))
    }

    /// Returns the number of claimants.
    pub(crate) fn len(&self) -> usize {
        self.list.borrow().fields.as_slice().len()
    }

    /// Returns a claimant by its number.
    pub(crate) fn get(&self, ClaimantId(number): ClaimantId) -> Claimant {
        let list = self.list.borrow();
        let reporter = list.numbers.keys().get(number as usize);
        let field = list.fields.as_slice().get(number as usize).copied().flatten();
        Claimant { reporter: reporter.map_or(0, |(reporter, _)| *reporter), field }
    }
}

/// Returns the address of a field; 0 for none.
#[inline(always)]
pub(super) fn address(field: Option<&'static Field>) -> usize {
    field.map_or(0, |field| std::ptr::from_ref(field).addr())
}

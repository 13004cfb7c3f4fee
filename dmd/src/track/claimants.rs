//! Who claims: a reporter, and the field through which it came to a block, by number.

use std::cell::{Cell, RefCell};

use memreport::__private::Claimant;
use memreport::Field;

use super::numbers::Numbers;
use super::pages::PageList;

/// The number of a claimant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimantId(pub(crate) u32);

/// All that have claimed something in one collection.
#[derive(Debug)]
pub(crate) struct Claimants {
    list: RefCell<List>,
    most: u32,
    /// Those that were just heard, each in the place that its field says.
    recent: [Cell<Recent>; 64],
}

#[derive(Debug)]
struct List {
    /// The reporter, and the address of the field.
    numbers: Numbers<(u32, u64)>,
    fields: PageList<Option<&'static Field>>,
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    /// `usize::MAX` is no field's.
    field: usize,
    reporter: u32,
    claimant: ClaimantId,
}

impl Claimants {
    /// None yet, and never more than so many.
    pub(crate) fn of_at_most(most: u32) -> Self {
        let nobody = Recent { field: usize::MAX, reporter: 0, claimant: ClaimantId(0) };
        Claimants {
            list: RefCell::new(List { numbers: Numbers::new(), fields: PageList::new() }),
            most,
            recent: std::array::from_fn(|_| Cell::new(nobody)),
        }
    }

    /// The number of whoever claims; `None` if memory is short, or there are too many.
    #[inline]
    pub(crate) fn number(&self, who: Claimant) -> Option<ClaimantId> {
        let field = who.field.map_or(0, |field| std::ptr::from_ref(field).addr());
        let place = &self.recent[field / align_of::<Field>() % self.recent.len()];
        let recent = place.get();
        if recent.field == field && recent.reporter == who.reporter {
            return Some(recent.claimant);
        }
        let claimant = self.look_up(who, field)?;
        place.set(Recent { field, reporter: who.reporter, claimant });
        Some(claimant)
    }

    #[cold]
    fn look_up(&self, who: Claimant, field: usize) -> Option<ClaimantId> {
        let List { numbers, fields } = &mut *self.list.borrow_mut();
        let number = numbers.number((who.reporter, field as u64))?;
        if number as usize == fields.as_slice().len() && !fields.push(who.field) {
            return None;
        }
        (number < self.most).then_some(ClaimantId(number))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.borrow().fields.as_slice().len()
    }

    /// Who it is.
    pub(crate) fn who(&self, ClaimantId(number): ClaimantId) -> Claimant {
        let list = self.list.borrow();
        let known = list.numbers.keys().get(number as usize);
        let field = list.fields.as_slice().get(number as usize).copied().flatten();
        Claimant { reporter: known.map_or(0, |(reporter, _)| *reporter), field }
    }
}

//! Who claims: a reporter, and the field through which it came to a block, by number.

use std::cell::{Cell, RefCell};

use memreport::__private::Who;
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
    reporter: u32,
    field: usize,
    claimant: Option<ClaimantId>,
}

impl Claimants {
    pub(crate) fn new() -> Self {
        let nobody = Recent { reporter: 0, field: 0, claimant: None };
        Claimants {
            list: RefCell::new(List { numbers: Numbers::new(), fields: PageList::new() }),
            recent: std::array::from_fn(|_| Cell::new(nobody)),
        }
    }

    /// The number of whoever claims; `None` if memory is short.
    #[inline]
    pub(crate) fn number(&self, who: Who) -> Option<ClaimantId> {
        let field = who.field.map_or(0, |field| std::ptr::from_ref(field).addr());
        let place = &self.recent[field / align_of::<Field>() % self.recent.len()];
        let recent = place.get();
        if recent.reporter == who.reporter && recent.field == field && recent.claimant.is_some() {
            return recent.claimant;
        }
        let claimant = self.look_up(who, field);
        place.set(Recent { reporter: who.reporter, field, claimant });
        claimant
    }

    #[cold]
    fn look_up(&self, who: Who, field: usize) -> Option<ClaimantId> {
        let List { numbers, fields } = &mut *self.list.borrow_mut();
        let number = numbers.number((who.reporter, field as u64))?;
        if number as usize == fields.as_slice().len() && !fields.push(who.field) {
            return None;
        }
        Some(ClaimantId(number))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.borrow().fields.as_slice().len()
    }

    /// Who it is.
    pub(crate) fn who(&self, ClaimantId(number): ClaimantId) -> Who {
        let list = self.list.borrow();
        let known = list.numbers.keys().get(number as usize);
        let field = list.fields.as_slice().get(number as usize).copied().flatten();
        Who { reporter: known.map_or(0, |(reporter, _)| *reporter), field }
    }
}

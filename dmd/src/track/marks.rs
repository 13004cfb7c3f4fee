//! What reporters claim during a collection.

use std::cell::{Cell, RefCell};

use memreport::__private::{Claim, Found, Recorder, Who, Wrong};
use memreport::Field;

use super::blocks::Granule;
use super::holders::Skips;
use super::hooks::BLOCKS;
use super::numbers::Numbers;
use super::pages::PageList;

/// A claim and what was found: one line of the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The start of the block, or the claimed address where there is none.
    pub(crate) address: usize,
    /// Tells the block from a later one at that address; 0 where there is none.
    pub(crate) identity: u64,
    /// The bytes that were added to the report.
    pub(crate) bytes: usize,
    pub(crate) reporter: u32,
    /// The number of the claim, so that claims of one block keep their order.
    pub(crate) order: u32,
    pub(crate) wrong: Option<Wrong>,
    pub(crate) field: Option<&'static Field>,
}

impl Mark {
    /// What a claim comes to: it is about the block that was found, or about the address where it is none's start. Its place in the order
    /// is given later.
    pub(crate) fn of(claim: Claim, found: Found, who: Who) -> Option<Self> {
        if found.block.is_none() && found.wrong.is_none() {
            // Some values own nothing, and are asked about all the same.
            return None;
        }
        // A claim inside a block is about that address, not about the block.
        let block = found.block.filter(|_| found.wrong != Some(Wrong::Interior));
        Some(Mark {
            order: 0,
            address: block.map_or(claim.address, |block| block.start),
            identity: block.map_or(0, |block| block.identity),
            bytes: found.bytes,
            reporter: who.reporter,
            wrong: found.wrong,
            field: who.field,
        })
    }
}

/// The buffer of one collection, in pages of its own.
#[derive(Debug)]
pub(crate) struct Marks {
    granule: Granule,
    list: RefCell<PageList<Mark>>,
    fields: RefCell<Fields>,
    /// Addresses of fields that were just visited, each in the place that its address says.
    recent: [Cell<usize>; 64],
    skips: RefCell<Skips>,
}

/// The fields that were visited, once each.
#[derive(Debug)]
struct Fields {
    numbers: Numbers<usize>,
    list: PageList<&'static Field>,
}

/// What was heard in one collection.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) marks: PageList<Mark>,
    /// The fields that were visited or skipped.
    pub(crate) fields: PageList<&'static Field>,
    pub(crate) skips: Skips,
}

impl Marks {
    pub(crate) fn new(granule: Granule) -> Self {
        Marks {
            granule,
            list: RefCell::new(PageList::new()),
            fields: RefCell::new(Fields { numbers: Numbers::new(), list: PageList::new() }),
            recent: [const { Cell::new(0) }; 64],
            skips: RefCell::new(Skips::new(granule)),
        }
    }

    pub(crate) fn into_heard(self) -> Heard {
        Heard {
            marks: self.list.into_inner(),
            fields: self.fields.into_inner().list,
            skips: self.skips.into_inner(),
        }
    }

    /// Adds a mark, and gives it its place in the order.
    #[inline]
    fn mark(&self, mark: Mark) {
        let mut list = self.list.borrow_mut();
        let order = u32::try_from(list.as_slice().len()).unwrap_or(u32::MAX);
        // A mark that is lost is counted there.
        let _ = list.push(Mark { order, ..mark });
    }

    #[cold]
    fn note(&self, field: &'static Field, place: usize) {
        let Fields { numbers, list } = &mut *self.fields.borrow_mut();
        if numbers.number(place) == u32::try_from(list.as_slice().len()).ok() {
            list.push(field);
        }
    }
}

impl Recorder for Marks {
    fn claimed(&self, claim: Claim, found: Found, who: Who) {
        if let Some(mark) = Mark::of(claim, found, who) {
            self.mark(mark);
        }
    }

    fn claimed_whole(&self, start: usize, size: usize, who: Who) -> Option<usize> {
        let (usable, entry) = BLOCKS.whole(self.granule, start, size)?;
        self.mark(Mark {
            order: 0,
            address: start,
            identity: entry.word(),
            bytes: usable,
            reporter: who.reporter,
            wrong: None,
            field: who.field,
        });
        Some(usable)
    }

    fn visits(&self, field: &'static Field, address: usize, size: usize) {
        let place = std::ptr::from_ref(field).addr();
        let recent = &self.recent[place / align_of::<Field>() % self.recent.len()];
        if recent.replace(place) != place {
            self.note(field, place);
        }
        if field.reason().is_some() {
            self.skips.borrow_mut().visit(field, address, size);
        }
    }

    fn position(&self) -> usize {
        self.list.borrow().as_slice().len()
    }

    fn roll_back(&self, position: usize) {
        self.list.borrow_mut().truncate(position);
    }
}

//! What reporters claim during a collection.

use std::cell::RefCell;

use memreport::__private::{Claim, Found, Recorder, Who, Wrong};
use memreport::Field;

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

/// The buffer of one collection, in pages of its own.
#[derive(Debug)]
pub(crate) struct Marks {
    list: RefCell<PageList<Mark>>,
}

impl Marks {
    pub(crate) fn new() -> Self {
        Marks { list: RefCell::new(PageList::new()) }
    }

    pub(crate) fn into_list(self) -> PageList<Mark> {
        self.list.into_inner()
    }
}

impl Recorder for Marks {
    fn claimed(&self, claim: Claim, found: Found, who: Who) {
        if found.block.is_none() && found.wrong.is_none() {
            // Some values own nothing, and are asked about all the same.
            return;
        }
        // A claim inside a block is about that address, not about the block.
        let block = found.block.filter(|_| found.wrong != Some(Wrong::Interior));
        let mut list = self.list.borrow_mut();
        let order = u32::try_from(list.as_slice().len()).unwrap_or(u32::MAX);
        // A mark that is lost is counted there.
        let _ = list.push(Mark {
            order,
            address: block.map_or(claim.address, |block| block.start),
            identity: block.map_or(0, |block| block.identity),
            bytes: found.bytes,
            reporter: who.reporter,
            wrong: found.wrong,
            field: who.field,
        });
    }

    fn position(&self) -> usize {
        self.list.borrow().as_slice().len()
    }

    fn roll_back(&self, position: usize) {
        self.list.borrow_mut().truncate(position);
    }
}

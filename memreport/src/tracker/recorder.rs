//! Defines the recorder of a collection's claims.

use core::cell::Cell;

use super::claim::{Claim, Found};
use crate::field::Field;

/// Hears every claim of one collection, in its order.
pub trait Recorder {
    /// A block was claimed, and this was found.
    fn claimed(&self, claim: Claim, found: Found, who: Who);

    /// The same for a block that starts here and was made with this size, looked up as well: the usable bytes. Where it is not as
    /// simple as that, nothing is heard, and `None` says so.
    fn claimed_whole(&self, start: usize, size: usize, who: Who) -> Option<usize> {
        let _ = (start, size, who);
        None
    }

    /// A field is about to be measured, or skipped; it lies at this address and has this size.
    fn visits(&self, field: &'static Field, address: usize, size: usize) {
        let _ = (field, address, size);
    }

    /// Where it is remembered which fields it has heard of, if it need not hear of each again: of one that is skipped it always does.
    fn heard_of(&self) -> Option<&HeardOf> {
        None
    }

    /// A place behind all claims that were heard so far.
    fn position(&self) -> usize;

    /// Forgets the claims from this position on: the reporter that made them failed.
    fn roll_back(&self, position: usize);
}

/// Fields that were just visited, each in the place that its address says.
#[derive(Debug)]
pub struct HeardOf([Cell<usize>; 64]);

impl HeardOf {
    /// None yet.
    #[must_use]
    pub fn nothing() -> Self {
        HeardOf([const { Cell::new(0) }; 64])
    }

    /// Whether another field was the last in its place.
    #[inline]
    pub(crate) fn is_news(&self, field: &'static Field) -> bool {
        let address = core::ptr::from_ref(field).addr();
        let place = &self.0[address / align_of::<Field>() % self.0.len()];
        place.replace(address) != address
    }
}

/// Who made a claim.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// The number of the reporter in this collection.
    pub reporter: u32,
    /// The nearest field of a derived type that led to the block.
    pub field: Option<&'static Field>,
}

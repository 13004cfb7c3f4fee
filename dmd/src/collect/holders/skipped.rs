//! Blocks that skipped fields point to, noted while reporters visit the fields.

use memreport::Field;

use super::words::each_word;
use crate::mem::pages::PageList;
use crate::table::BLOCKS;
use crate::table::blocks::{Granule, LiveBlock};

/// The maximum bytes to read of one skipped value.
const MAX_VALUE_BYTES: usize = 4096;

/// The maximum number of skipped values to read in one collection.
const MAX_VALUES: usize = 1 << 16;

/// The pointers into blocks that were found in skipped fields.
#[derive(Debug)]
pub(crate) struct SkippedPointers {
    granule: Granule,
    /// The number of skipped values so far.
    values: usize,
    pointers: PageList<SkippedPointer>,
}

/// A block that a skipped field points into.
#[derive(Clone, Copy, Debug)]
pub(super) struct SkippedPointer {
    pub(super) start: usize,
    /// The block's packed word: a later block at this address has another.
    pub(super) identity: u64,
    pub(super) field: &'static Field,
}

impl SkippedPointers {
    pub(crate) fn new(granule: Granule) -> Self {
        SkippedPointers { granule, values: 0, pointers: PageList::new() }
    }

    /// Reads a skipped value, whose memory is valid during the call, for pointers into blocks.
    pub(crate) fn scan(&mut self, field: &'static Field, address: usize, size: usize) {
        self.values += 1;
        if self.values > MAX_VALUES {
            return;
        }
        let (granule, pointers) = (self.granule, &mut self.pointers);
        each_word(address, address + size.min(MAX_VALUE_BYTES), |_, word| {
            if let Some(LiveBlock { start, packed, .. }) = BLOCKS.enclosing(granule, word) {
                pointers.push(SkippedPointer { start, identity: packed.word(), field });
            }
        });
    }

    pub(super) fn as_slice(&self) -> &[SkippedPointer] {
        self.pointers.as_slice()
    }
}

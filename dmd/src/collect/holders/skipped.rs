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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::stack::site::SiteId;
    use crate::table::epoch::Epoch;
    use crate::table::packed_block::Block;

    const FIELD: &Field = &Field::of::<SkippedPointers>("pointers", file!(), line!());
    const GRANULE: Granule = Granule::OF_32;

    /// Scans a value of these words.
    fn scan(found: &mut SkippedPointers, words: &[usize]) {
        found.scan(FIELD, words.as_ptr().addr(), size_of_val(words));
    }

    /// Returns the starts of the blocks that were found.
    fn starts(found: &SkippedPointers) -> Vec<usize> {
        found.as_slice().iter().map(|pointer| pointer.start).collect()
    }

    #[test]
    fn pointers_of_a_skipped_value_into_blocks_are_noted_up_to_the_limits() {
        // Nothing else has the address of this block while it lives.
        let memory = vec![[0_usize; 8]; 4];
        let start = memory.as_ptr().addr().next_multiple_of(32);
        let block = Block {
            requested: 64,
            usable: 64,
            site: SiteId::UNKNOWN,
            epoch: Epoch::FIRST,
            rate: SamplingRate::EVERY,
            time: 0,
        };
        BLOCKS.insert(GRANULE, start, block);
        let packed = BLOCKS.starting_at(GRANULE, start).expect("it was inserted").packed;

        let mut found = SkippedPointers::new(GRANULE);
        scan(&mut found, &[7, start, start + 40, start + 64, 0]);
        assert_eq!(starts(&found), [start, start]);
        let first = found.as_slice()[0];
        assert_eq!((first.identity, first.field.name()), (packed.word(), "pointers"));

        // Of a big value the beginning is read.
        let mut found = SkippedPointers::new(GRANULE);
        let mut words = [0; MAX_VALUE_BYTES / size_of::<usize>() + 1];
        *words.last_mut().expect("there are words") = start;
        scan(&mut found, &words);
        assert!(found.as_slice().is_empty());
        words[words.len() - 2] = start;
        scan(&mut found, &words);
        assert_eq!(starts(&found), [start]);

        // Of many values the first are read.
        found.values = MAX_VALUES - 1;
        scan(&mut found, &[start]);
        assert_eq!(found.as_slice().len(), 2);
        scan(&mut found, &[start]);
        assert_eq!(found.as_slice().len(), 2);
        BLOCKS.remove(GRANULE, start);
        drop(memory);
    }
}

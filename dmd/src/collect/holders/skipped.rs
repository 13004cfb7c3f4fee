//! Blocks that skipped fields point to, noted while reporters visit the fields.

use memreport::__private::{AroundBegin, Words, prefetch};
use memreport::Field;

use crate::collect::claims::starts::Starts;
use crate::mem::pages::PageList;
use crate::mem::sys;
use crate::table::BLOCKS;
use crate::table::blocks::{Granule, LiveBlock};

/// The maximum number of words to read of one skipped value.
const MAX_WORDS: usize = 512;

/// The maximum number of values of one field to read in a collection.
const MAX_VALUES: u32 = 1 << 14;

/// The number of words that are looked up together, so that the processor can wait for many words
/// of the table at once.
const BATCH: usize = 64;

/// The number of words that are not looked up again.
const RECENT: usize = 64;

/// The pointers into blocks that were found in skipped fields.
#[derive(Debug)]
pub(crate) struct SkippedPointers {
    granule: Granule,
    /// The number of values of each field so far, by the field's index.
    values: PageList<u32>,
    /// Words that are not looked up yet.
    waiting: PageList<WaitingWord>,
    /// A direct-mapped cache of words and their fields' indexes: many values have equal words, and
    /// each leads to the same block.
    recent: [(usize, usize); RECENT],
    pointers: PageList<SkippedPointer>,
}

/// A word of a skipped field.
#[derive(Clone, Copy, Debug)]
struct WaitingWord {
    word: usize,
    field: &'static Field,
    /// The block around it, as far as the copy of the table tells.
    around: AroundBegin,
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
        SkippedPointers {
            granule,
            values: PageList::new(),
            waiting: PageList::new(),
            recent: [(0, usize::MAX); RECENT],
            pointers: PageList::new(),
        }
    }

    /// Reads the words of a skipped value for pointers into blocks. Of each field, the first values
    /// are read. `starts` has the blocks that were live when the collection began. Returns whether
    /// further values of the field are needed.
    pub(crate) fn scan(
        &mut self,
        field: &'static Field,
        index: usize,
        words: Words<'_>,
        starts: &Starts,
    ) -> bool {
        while self.values.as_slice().len() <= index {
            if !self.values.push(0) {
                return true;
            }
        }
        let values = &mut self.values.as_mut_slice()[index];
        if *values == MAX_VALUES {
            return false;
        }
        *values += 1;
        let needs_more = *values < MAX_VALUES;
        let is_address = |word: &usize| may_be_address(*word) && starts.may_be_near(*word);
        for word in words.take(MAX_WORDS).filter(is_address) {
            // Blocks are multiples of 16 bytes apart.
            let recent = &mut self.recent[word / 16 % RECENT];
            if std::mem::replace(recent, (word, index)) == (word, index) {
                continue;
            }
            self.waiting.push(WaitingWord { word, field, around: AroundBegin::Unknown });
            if self.waiting.as_slice().len() >= BATCH {
                self.look_up(starts);
            }
        }
        needs_more
    }

    /// Looks up the waiting words: in the copy of the table first, which leaves out most of them.
    pub(crate) fn look_up(&mut self, starts: &Starts) {
        for WaitingWord { word, .. } in self.waiting.as_slice() {
            prefetch(starts.address_of_byte(sys::untagged(*word)));
        }
        for waiting in self.waiting.as_mut_slice() {
            waiting.around = starts.around(sys::untagged(waiting.word));
            if let AroundBegin::Block { start, .. } = waiting.around {
                prefetch(BLOCKS.word_address(self.granule, start));
            }
        }
        for WaitingWord { word, field, around } in self.waiting.as_slice() {
            let found = match around {
                AroundBegin::Block { start, .. } => BLOCKS.starting_at(self.granule, *start),
                AroundBegin::NoBlock => None,
                AroundBegin::Unknown => BLOCKS.enclosing(self.granule, *word),
            };
            if let Some(LiveBlock { start, packed, .. }) = found {
                self.pointers.push(SkippedPointer { start, identity: packed.word(), field });
            }
        }
        self.waiting.truncate(0);
    }

    /// Returns the pointers of the words that were looked up.
    pub(super) fn as_slice(&self) -> &[SkippedPointer] {
        self.pointers.as_slice()
    }
}

/// Returns whether a block may lie at this address: the first pages are never mapped.
fn may_be_address(word: usize) -> bool {
    (sys::PAGE..sys::ADDRESS_END).contains(&sys::untagged(word))
}

#[cfg(test)]
mod tests {
    use memreport::__private::words_of;

    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::stack::site::SiteId;
    use crate::table::epoch::Epoch;
    use crate::table::packed_block::{Block, PackedBlock};

    const FIELD: &Field = &Field::of::<SkippedPointers>("pointers", file!(), line!());
    const GRANULE: Granule = Granule::OF_32;

    /// Scans a value of these words, of the field with this index.
    fn scan(found: &mut SkippedPointers, index: usize, words: &[usize], copy: &Starts) -> bool {
        let needs_more = found.scan(FIELD, index, words_of(words), copy);
        found.look_up(copy);
        needs_more
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
            requested: 56,
            usable: 56,
            site: SiteId::UNKNOWN,
            epoch: Epoch::FIRST,
            rate: SamplingRate::EVERY,
            time: 0,
        };
        BLOCKS.insert(GRANULE, start, block);
        let packed = BLOCKS.starting_at(GRANULE, start).expect("it was inserted").packed;

        let mut incomplete = Starts::new(GRANULE);
        incomplete.set_incomplete();
        are_noted(&incomplete, start, packed);
        // Miri would map the copy of a whole region.
        if cfg!(not(miri)) {
            let mut copy = Starts::new(GRANULE);
            copy.insert(start, block.usable);
            are_noted(&copy, start, packed);
            // Without a block in the copy none is looked for.
            let mut found = SkippedPointers::new(GRANULE);
            scan(&mut found, 0, &[start], &Starts::new(GRANULE));
            assert!(found.as_slice().is_empty());
        }
        BLOCKS.remove(GRANULE, start);
        drop(memory);
    }

    /// Scans values with pointers to this block and others.
    fn are_noted(copy: &Starts, start: usize, packed: PackedBlock) {
        let mut found = SkippedPointers::new(GRANULE);
        scan(&mut found, 0, &[7, start, start + 40, start + 64, 0], copy);
        assert_eq!(starts(&found), [start, start]);
        let first = found.as_slice()[0];
        assert_eq!((first.identity, first.field.name()), (packed.word(), "pointers"));

        // Of a big value the beginning is read.
        let mut found = SkippedPointers::new(GRANULE);
        let mut words = [0; MAX_WORDS + 1];
        *words.last_mut().expect("there are words") = start;
        scan(&mut found, 0, &words, copy);
        assert!(found.as_slice().is_empty());
        words[words.len() - 2] = start;
        scan(&mut found, 0, &words, copy);
        assert_eq!(starts(&found), [start]);

        // Of many values the first are read, of each field.
        found.values.as_mut_slice()[0] = MAX_VALUES - 2;
        assert!(scan(&mut found, 0, &[], copy));
        assert!(!scan(&mut found, 0, &[start + 16], copy));
        assert_eq!(found.as_slice().len(), 2);
        assert!(!scan(&mut found, 0, &[start + 32], copy));
        assert_eq!(found.as_slice().len(), 2);
        // A word is looked up once for each field.
        for _ in 0..2 {
            assert!(scan(&mut found, 1, &[start], copy));
            assert_eq!(found.as_slice().len(), 3);
        }
    }
}

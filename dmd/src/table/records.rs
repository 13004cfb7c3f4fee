//! Records: sizes and times that do not fit into a block's word, with a free list of unused
//! records.
//!
//! A record is a sequence lock. The word of a block alone does not prove that its record was not
//! reused: a site that frees a block and allocates another one at the same address gets the same
//! record, and so the same word.
#![expect(clippy::cast_possible_truncation, reason = "sizes went in as usize")]

use super::packed_block::RECORD_LIMIT;
use crate::mem::concurrent_vec::ConcurrentVec;
use crate::mem::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU64, const_fn, load_own};

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    /// See `Block::time`.
    pub(crate) time: u64,
}

/// The words of a record: its three fields, and its sequence number. In a free record the first is
/// the next free one plus one.
const WORDS: usize = 4;

/// The index of the sequence number, which counts how often the record was stored.
const SEQUENCE: usize = 3;

/// All records.
pub(crate) struct Records {
    words: ConcurrentVec<AtomicU64>,
    /// The number of records that were ever used.
    count: AtomicU64,
    /// The head of the free list: in the low half the first free record plus one, in the high half
    /// the number of records that were taken from the list, against the ABA problem.
    free_list: AtomicU64,
}

impl Records {
    const_fn! {
        pub(crate) fn new() -> Self {
            Records { words: ConcurrentVec::new(), count: AtomicU64::new(0), free_list: AtomicU64::new(0) }
        }
    }

    /// Stores a record and returns its number. Returns `None` when memory is short.
    #[cold]
    pub(crate) fn insert(&self, Record { requested, usable, time }: Record) -> Option<u32> {
        let record = self.pop_free().or_else(|| self.alloc_new())?;
        // Release, with the Acquire of `read`: a reader of any of these words also sees that the
        // former block's word was cleared, and a reader of the sequence number sees the fields.
        self.word(record, 0)?.store(requested as u64, Release);
        self.word(record, 1)?.store(usable as u64, Release);
        self.word(record, 2)?.store(time, Release);
        let sequence = self.word(record, SEQUENCE)?;
        sequence.store(load_own(sequence) + 1, Release);
        Some(record)
    }

    /// Returns the content of a record. The caller owns its block.
    #[cold]
    pub(crate) fn get(&self, record: u32) -> Record {
        let word = |which| self.word(record, which).map_or(0, load_own);
        Record { requested: word(0) as usize, usable: word(1) as usize, time: word(2) }
    }

    /// Returns the content of a record whose block another thread may own. `is_current` returns
    /// whether the block's word still names the record. Returns `None` if it does not, or if the
    /// record was written meanwhile.
    #[cold]
    pub(crate) fn read(&self, record: u32, is_current: impl FnOnce() -> bool) -> Option<Record> {
        // Acquire, with the Release of `insert`: it orders these loads and the one of the block's
        // word in `is_current`. A field of a later block shows that the word was cleared. If the
        // word is there again, `insert` has counted on before.
        let word = |which| self.word(record, which).map(|word| word.load(Acquire));
        let sequence = word(SEQUENCE)?;
        let (requested, usable, time) = (word(0)? as usize, word(1)? as usize, word(2)?);
        let is_whole = is_current() && word(SEQUENCE) == Some(sequence);
        is_whole.then_some(Record { requested, usable, time })
    }

    /// Frees the record of a removed block.
    #[cold]
    pub(crate) fn free(&self, record: u32) {
        let Some(next) = self.word(record, 0) else { return };
        let mut head = self.free_list.load(Relaxed);
        loop {
            // Release, as in `insert`: a reader may still read this word.
            next.store(head & INDEX_MASK, Release);
            let new = head & !INDEX_MASK | u64::from(record + 1);
            // Release, with the Acquire of `pop_free`: the link is written before the record is on
            // the list.
            match self.free_list.compare_exchange_weak(head, new, Release, Relaxed) {
                Ok(_) => return,
                Err(current) => head = current,
            }
        }
    }

    fn pop_free(&self) -> Option<u32> {
        let mut head = self.free_list.load(Acquire);
        loop {
            let record = u32::try_from(head & INDEX_MASK).ok()?.checked_sub(1)?;
            // It may already be the next owner's size. Then the version in the head has changed,
            // and the exchange below fails.
            let next = self.word(record, 0)?.load(Relaxed) & INDEX_MASK;
            let new = (head & !INDEX_MASK).wrapping_add(1 << 32) | next;
            match self.free_list.compare_exchange_weak(head, new, AcqRel, Acquire) {
                Ok(_) => return Some(record),
                Err(current) => head = current,
            }
        }
    }

    fn alloc_new(&self) -> Option<u32> {
        let record = u32::try_from(self.count.fetch_add(1, Relaxed))
            .ok()
            .filter(|record| *record < RECORD_LIMIT)?;
        // All words of a record lie in one segment: lengths of segments are multiples of `WORDS`.
        self.words.get_or_alloc(record as usize * WORDS)?;
        Some(record)
    }

    fn word(&self, record: u32, which: usize) -> Option<&'static AtomicU64> {
        self.words.get(record as usize * WORDS + which)
    }
}

const INDEX_MASK: u64 = 0xffff_ffff;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_released_record_is_used_again() {
        let records = Records::new();
        let record = |requested: usize, time| Record { requested, usable: requested + 1, time };
        let (one, other) = (record(1 << 40, 0), record(3 << 40, u64::MAX));
        let first = records.insert(one).unwrap();
        let second = records.insert(other).unwrap();
        assert_eq!((records.get(first), records.get(second)), (one, other));
        records.free(first);
        records.free(second);
        assert_eq!(records.insert(record(5, 6)), Some(second));
        assert_eq!(records.insert(record(7, 8)), Some(first));
        assert_eq!((records.get(first), records.get(second)), (record(7, 8), record(5, 6)));
    }

    #[test]
    fn a_record_that_was_reused_is_not_read() {
        let records = Records::new();
        let record = |requested: usize| Record { requested, usable: requested + 1, time: 5 };
        let first = records.insert(record(1)).unwrap();
        assert_eq!(records.read(first, || true), Some(record(1)));
        assert_eq!(records.read(first, || false), None, "the block's word names it no more");
        let reuse = || {
            records.free(first);
            records.insert(record(2)) == Some(first)
        };
        assert_eq!(records.read(first, reuse), None, "its number is the same, its content is not");
        assert_eq!(records.read(first, || true), Some(record(2)));
    }

    #[test]
    fn every_record_of_many_has_its_words() {
        const COUNT: usize = if cfg!(miri) { 300 } else { 5000 };
        let records = Records::new();
        let record = |number| Record { requested: number, usable: number * 2, time: 7 };
        let kept: Vec<_> =
            (0..COUNT).map(|number| records.insert(record(number)).unwrap()).collect();
        for (number, kept) in kept.into_iter().enumerate() {
            assert_eq!(records.get(kept), record(number));
        }
    }

    #[test]
    fn threads_never_hold_the_same_record() {
        let records = Records::new();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let records = &records;
                scope.spawn(move || {
                    for turn in 0..if cfg!(miri) { 100 } else { 20_000 } {
                        let own = Record { requested: thread << 32 | turn, usable: turn, time: 9 };
                        let record = records.insert(own).unwrap();
                        assert_eq!(records.get(record), own);
                        records.free(record);
                    }
                });
            }
        });
    }
}

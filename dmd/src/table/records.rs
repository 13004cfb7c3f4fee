//! What a block's word has no room for, in numbered records that are used again: big sizes, and times.
#![expect(clippy::cast_possible_truncation, reason = "sizes went in as usize")]

use super::packed_block::RECORD_LIMIT;
use crate::mem::concurrent_vec::ConcurrentVec;
use crate::mem::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU64, const_fn};

/// What is kept of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    /// As in `Block`.
    pub(crate) time: u64,
}

/// The words of a record: its three fields; in a free one, the first is the number of the next free one.
const WORDS: usize = 3;

/// All records.
pub(crate) struct Records {
    words: ConcurrentVec<AtomicU64>,
    /// How many records were ever used.
    made: AtomicU64,
    /// The first free record plus one in the low half; in the high half a count that tells one visit from the next.
    free: AtomicU64,
}

impl Records {
    const_fn! {
        pub(crate) fn new() -> Self {
            Records { words: ConcurrentVec::new(), made: AtomicU64::new(0), free: AtomicU64::new(0) }
        }
    }

    /// Keeps it for a block; `None` when memory is short.
    #[cold]
    pub(crate) fn keep(&self, Record { requested, usable, time }: Record) -> Option<u32> {
        let record = self.take_free().or_else(|| self.take_new())?;
        // Release, with the Acquire of `get`: whoever reads these sees that the former block of the record is gone.
        self.word(record, 0)?.store(requested as u64, Release);
        self.word(record, 1)?.store(usable as u64, Release);
        self.word(record, 2)?.store(time, Release);
        Some(record)
    }

    /// What was kept.
    #[cold]
    pub(crate) fn get(&self, record: u32) -> Record {
        // Acquire: a reader looks at the block's word once more, after this.
        let word = |which| self.word(record, which).map_or(0, |word| word.load(Acquire));
        Record { requested: word(0) as usize, usable: word(1) as usize, time: word(2) }
    }

    /// The block is gone.
    #[cold]
    pub(crate) fn release(&self, record: u32) {
        let Some(next) = self.word(record, 0) else { return };
        let mut head = self.free.load(Relaxed);
        loop {
            // Release, as in `keep`.
            next.store(head & LOW, Release);
            let new = (head & !LOW).wrapping_add(1 << 32) | u64::from(record + 1);
            // Release, with the Acquire of `take_free`: the link is there before the record is offered.
            match self.free.compare_exchange_weak(head, new, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn take_free(&self) -> Option<u32> {
        let mut head = self.free.load(Acquire);
        loop {
            let record = u32::try_from(head & LOW).ok()?.checked_sub(1)?;
            // May be the next owner's size already; then the count in the head has changed, and it is not used.
            let next = self.word(record, 0)?.load(Relaxed) & LOW;
            let new = (head & !LOW).wrapping_add(1 << 32) | next;
            match self.free.compare_exchange_weak(head, new, AcqRel, Acquire) {
                Ok(_) => return Some(record),
                Err(now) => head = now,
            }
        }
    }

    fn take_new(&self) -> Option<u32> {
        let record = u32::try_from(self.made.fetch_add(1, Relaxed))
            .ok()
            .filter(|record| *record < RECORD_LIMIT)?;
        self.words.get_or_make(record as usize * WORDS + WORDS - 1)?;
        // Its words may lie in two segments.
        self.words.get_or_make(record as usize * WORDS)?;
        Some(record)
    }

    fn word(&self, record: u32, which: usize) -> Option<&'static AtomicU64> {
        self.words.get(record as usize * WORDS + which)
    }
}

const LOW: u64 = 0xffff_ffff;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_released_record_is_used_again() {
        let records = Records::new();
        let record = |requested: usize, time| Record { requested, usable: requested + 1, time };
        let (one, other) = (record(1 << 40, 0), record(3 << 40, u64::MAX));
        let first = records.keep(one).unwrap();
        let second = records.keep(other).unwrap();
        assert_eq!((records.get(first), records.get(second)), (one, other));
        records.release(first);
        records.release(second);
        assert_eq!(records.keep(record(5, 6)), Some(second));
        assert_eq!(records.keep(record(7, 8)), Some(first));
        assert_eq!((records.get(first), records.get(second)), (record(7, 8), record(5, 6)));
    }

    #[test]
    fn every_record_of_a_thousand_has_its_words() {
        let records = Records::new();
        let record = |number| Record { requested: number, usable: number * 2, time: 7 };
        let kept: Vec<_> = (0..5000).map(|number| records.keep(record(number)).unwrap()).collect();
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
                    for turn in 0..20_000 {
                        let own = Record { requested: thread << 32 | turn, usable: turn, time: 9 };
                        let record = records.keep(own).unwrap();
                        assert_eq!(records.get(record), own);
                        records.release(record);
                    }
                });
            }
        });
    }
}

//! LocalInterner for pairs of words: the same pair gets the same number, from any thread, without a lock.
#![expect(
    clippy::cast_possible_truncation,
    reason = "hashes are cut to the table, and addresses have 64 bits"
)]

use super::concurrent_vec::ConcurrentVec;
use super::pages::Lazy;
use super::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use super::sync::{AtomicU32, AtomicU64, AtomicUsize, array_of, const_fn};

/// Pairs by number and numbers by pair. Pairs are never forgotten and never move.
///
/// The index is a row of hash tables, each twice as big as the one before. A pair is looked for in all, the newest first,
/// and entered in the newest. Two threads that enter the same pair while a table is added may give it two numbers: whoever
/// compares pairs across threads compares what they stand for.
pub(crate) struct Interner {
    /// The pairs: two words each, from number 1.
    words: ConcurrentVec<AtomicU64>,
    made: AtomicUsize,
    /// LocalInterner by hash; 0 is an empty place.
    tables: [Lazy<AtomicU32>; TABLES],
    newest: AtomicUsize,
    limit: u32,
}

/// The places of the first table.
const FIRST_TABLE: usize = if cfg!(loom) { 2 } else { 1 << 12 };
const TABLES: usize = if cfg!(loom) { 2 } else { 18 };

impl Interner {
    const_fn! {
        /// Gives out numbers below `limit`.
        pub(crate) fn new(limit: u32) -> Self {
            Interner {
                words: ConcurrentVec::new(),
                made: AtomicUsize::new(0),
                tables: array_of!(Lazy::new(); TABLES),
                newest: AtomicUsize::new(0),
                limit,
            }
        }
    }

    /// The number of the pair, from 1. 0 when it is new and there is no place for it.
    #[inline]
    pub(crate) fn intern(&self, pair: (u64, u64)) -> u32 {
        let hash = hash(pair);
        // Acquire, with the Release of `grow`: a newer table's zeros are there.
        let newest = self.newest.load(Acquire);
        match self.find(newest, hash, pair) {
            Some(number) => number,
            None => self.intern_slowly(newest, hash, pair),
        }
    }

    /// The pair of a number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<(u64, u64)> {
        let at = (number as usize).checked_sub(1)? * 2;
        Some((self.words.get(at)?.load(Relaxed), self.words.get(at + 1)?.load(Relaxed)))
    }

    /// How many numbers were given out.
    pub(crate) fn len(&self) -> usize {
        self.made.load(Relaxed).min(self.limit as usize)
    }

    #[cold]
    fn intern_slowly(&self, newest: usize, hash: u64, pair: (u64, u64)) -> u32 {
        let older = (0..newest).rev().find_map(|table| self.find(table, hash, pair));
        let number = match older.or_else(|| self.make(pair)) {
            None => return 0,
            Some(number) => self.enter(newest, hash, pair, number).unwrap_or(number),
        };
        if self.len() > table_size(newest) / 2 {
            self.grow(newest);
        }
        number
    }

    #[inline]
    fn find(&self, table: usize, hash: u64, pair: (u64, u64)) -> Option<u32> {
        let size = table_size(table);
        let places = self.tables[table].get(size)?;
        for step in 0..PROBES {
            // Acquire, with the Release of `enter`: the pair is there before its number.
            let number = places[place(hash, step, size)].load(Acquire);
            if number == 0 {
                return None;
            }
            if self.get(number) == Some(pair) {
                return Some(number);
            }
        }
        None
    }

    /// Enters the number, or finds that another thread has entered the pair: then that one's.
    fn enter(&self, table: usize, hash: u64, pair: (u64, u64), number: u32) -> Option<u32> {
        let size = table_size(table);
        let places = self.tables[table].get_or_make(size)?;
        for step in 0..PROBES {
            let place = &places[place(hash, step, size)];
            match place.compare_exchange(0, number, AcqRel, Acquire) {
                Ok(_) => return Some(number),
                Err(other) if self.get(other) == Some(pair) => return Some(other),
                Err(_) => {}
            }
        }
        None
    }

    fn make(&self, pair: (u64, u64)) -> Option<u32> {
        let at = self.made.load(Relaxed);
        if at + 1 >= self.limit as usize {
            return None;
        }
        let at = self.made.fetch_add(1, Relaxed);
        let number = u32::try_from(at + 1).ok().filter(|number| *number < self.limit)?;
        self.words.get_or_make(at * 2)?.store(pair.0, Relaxed);
        self.words.get_or_make(at * 2 + 1)?.store(pair.1, Relaxed);
        Some(number)
    }

    fn grow(&self, newest: usize) {
        let next = newest + 1;
        if next < TABLES && self.tables[next].get_or_make(table_size(next)).is_some() {
            let _ = self.newest.compare_exchange(newest, next, Release, Relaxed);
        }
    }
}

/// Tables are at most half full, so a longer row of taken places hardly ever happens; a pair that meets one is entered
/// nowhere, and gets a new number each time until the next table is made.
const PROBES: usize = if cfg!(loom) { 2 } else { 64 };

fn table_size(table: usize) -> usize {
    FIRST_TABLE << table
}

#[inline]
fn place(hash: u64, step: usize, size: usize) -> usize {
    (hash as usize).wrapping_add(step) & (size - 1)
}

/// Both words in one, spread over all bits: a multiplication whose two halves are added.
#[inline]
fn hash(pair: (u64, u64)) -> u64 {
    // The first word is a small number, the second an address or small too: rotated, they hardly overlap.
    let both = pair.0 ^ pair.1.rotate_left(23) ^ 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(both) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_same_pair_gets_the_same_number_however_many_there_are() {
        let interner = Interner::new(1 << 24);
        let pair = |index: u64| (index / 7, 0x5555_0000_0000 + index * 16);
        let numbers: Vec<u32> = (0..100_000).map(|index| interner.intern(pair(index))).collect();
        let different: HashMap<u32, u64> = numbers.iter().copied().zip(0..).collect();
        assert_eq!(different.len(), numbers.len());
        for (index, number) in (0..).zip(numbers) {
            assert_eq!(interner.intern(pair(index)), number);
            assert_eq!(interner.get(number), Some(pair(index)));
        }
    }

    #[test]
    fn a_full_interner_answers_zero_to_what_is_new_only() {
        let interner = Interner::new(4);
        let numbers: Vec<u32> = (0..5).map(|index| interner.intern((index, 0))).collect();
        assert_eq!(numbers, [1, 2, 3, 0, 0]);
        assert_eq!(interner.intern((1, 0)), 2);
    }

    #[test]
    fn threads_agree() {
        let interner = Interner::new(1 << 24);
        let run = || {
            (0..20_000_u64)
                .map(|index| interner.intern((index % 997, index % 13)))
                .collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            for thread in threads {
                for (index, number) in (0..).zip(thread.join().unwrap()) {
                    assert_eq!(interner.get(number), Some((index % 997, index % 13)));
                }
            }
        });
    }
}

//! Lock-free interning of pairs of words: equal pairs get equal numbers, on any thread.
#![expect(
    clippy::cast_possible_truncation,
    reason = "hashes are cut to the table, and addresses have 64 bits"
)]

use super::concurrent_vec::ConcurrentVec;
use super::lazy_slice::LazySlice;
use super::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use super::sync::{AtomicU32, AtomicU64, AtomicUsize, array_of, const_fn};

/// A lock-free map from pairs to numbers and back. Pairs are never removed and never move.
///
/// The index is a list of open-addressing hash tables, each twice as large as the one before. A
/// look-up searches all of them, the newest first; an insertion goes into the newest. While a table
/// is added, two threads that intern the same pair may give it two numbers. So compare pairs across
/// threads by value, not by number.
pub(crate) struct Interner {
    /// The pairs by number, from 1.
    pairs: ConcurrentVec<[AtomicU64; 2]>,
    count: AtomicUsize,
    /// Hash tables of numbers; 0 is an empty slot.
    tables: [LazySlice<AtomicU32>; TABLES],
    newest: AtomicUsize,
    limit: u32,
}

/// The number of slots of the first table, which takes 64 KiB. Behind a smaller one, more programs
/// would need a second table, and search both for each stack that only the first one has.
const FIRST_TABLE: usize = if cfg!(loom) {
    2
} else if cfg!(miri) {
    // Miri visits every place of a table at each access.
    1 << 6
} else {
    1 << 14
};
const TABLES: usize = if cfg!(loom) { 2 } else { 16 };

impl Interner {
    const_fn! {
        /// Makes an interner for numbers below `limit`.
        pub(crate) fn new(limit: u32) -> Self {
            Interner {
                pairs: ConcurrentVec::new(),
                count: AtomicUsize::new(0),
                tables: array_of!(LazySlice::new(); TABLES),
                newest: AtomicUsize::new(0),
                limit,
            }
        }
    }

    /// Returns the number of the pair, from 1. Returns 0 if the pair is new and there is no space.
    #[inline]
    pub(crate) fn intern(&self, pair: (u64, u64)) -> u32 {
        let hash = hash(pair);
        // Acquire, with the Release of `grow`: the newer table is mapped.
        let newest = self.newest.load(Acquire);
        match self.find(newest, hash, pair) {
            Some(number) => number,
            None => self.intern_slow(newest, hash, pair).0,
        }
    }

    /// Interns a list. A list has the number of a pair: the number of the words before, and the
    /// last word. `before` is the number of the first words, 0 if there are none; `words` are the
    /// others. Calls `keep` with the number of the list up to each of them. Returns the number of
    /// the whole list, or `None` if there is no space for it.
    pub(crate) fn intern_list(
        &self,
        mut before: u32,
        mut words: impl ExactSizeIterator<Item = u64>,
        mut keep: impl FnMut(u32),
    ) -> Option<u32> {
        // Acquire, with the Release of `grow`: the newer table is mapped.
        let newest = self.newest.load(Acquire);
        while let Some(word) = words.next() {
            let pair = (u64::from(before), word);
            let hash = hash(pair);
            let (number, is_new) = match self.find(newest, hash, pair) {
                Some(number) => (number, false),
                None => self.intern_slow(newest, hash, pair),
            };
            if number == 0 {
                return None;
            }
            keep(number);
            before = number;
            if is_new {
                before = self.append_list(before, &mut words, &mut keep)?;
            }
        }
        Some(before)
    }

    /// Appends the longer lists of one whose number is new. So they are new, too: no table is
    /// searched for them. Returns the number of the last one, or `None` if there is no space. It
    /// ends early if another thread has interned a list first.
    fn append_list(
        &self,
        mut before: u32,
        words: &mut impl ExactSizeIterator<Item = u64>,
        keep: &mut impl FnMut(u32),
    ) -> Option<u32> {
        let count = words.len();
        if count == 0 {
            return Some(before);
        }
        // Acquire, with the Release of `grow`.
        let newest = self.newest.load(Acquire);
        let slots = self.tables.get(newest)?.get_or_alloc_dense(table_size(newest))?;
        let mut own = u32::try_from(self.reserve(count)?).ok()?;
        while words.len() != 0 {
            // Up to the end of a segment.
            let places = self.pairs.get_or_alloc_from(own as usize)?;
            for (place, word) in places.iter().zip(words.by_ref()) {
                own += 1;
                let pair = (u64::from(before), word);
                store(place, pair);
                // Another thread that has met the new number may have interned this pair in the
                // same table.
                before = self.insert_into(slots, hash(pair), pair, own).unwrap_or(own);
                keep(before);
                if before != own {
                    // The other reserved numbers stay unused.
                    return Some(before);
                }
            }
        }
        self.grow_if_half_full(newest);
        Some(before)
    }

    /// Returns the pair of a number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<(u64, u64)> {
        let [first, second] = self.pairs.get((number as usize).checked_sub(1)?)?;
        // Relaxed: a caller received the number after the Acquire in `find` or its own `append`.
        Some((first.load(Relaxed), second.load(Relaxed)))
    }

    /// Returns the number of pairs.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Relaxed).min(self.limit as usize)
    }

    /// Interns a pair that is not in the newest table. Returns its number, 0 if there is no space,
    /// and whether the number is new.
    #[cold]
    fn intern_slow(&self, newest: usize, hash: u64, pair: (u64, u64)) -> (u32, bool) {
        match (0..newest).rev().find_map(|table| self.find(table, hash, pair)) {
            Some(number) => (self.insert(newest, hash, pair, number).unwrap_or(number), false),
            None => self.append_and_insert(newest, hash, pair),
        }
    }

    /// Gives a pair a number, unless another thread has done so in the newest table. Returns the
    /// number, 0 if there is no space, and whether it is new.
    #[inline]
    fn append_and_insert(&self, newest: usize, hash: u64, pair: (u64, u64)) -> (u32, bool) {
        let Some(own) = self.append(pair) else { return (0, false) };
        let number = self.insert(newest, hash, pair, own).unwrap_or(own);
        self.grow_if_half_full(newest);
        (number, number == own)
    }

    #[inline]
    fn find(&self, table: usize, hash: u64, pair: (u64, u64)) -> Option<u32> {
        let size = table_size(table);
        let slots = self.tables[table].get(size)?;
        for step in 0..PROBES {
            // Acquire, with the Release of `insert`: the pair is written before its number.
            let number = slots[slot_index(hash, step, size)].load(Acquire);
            if number == 0 {
                return None;
            }
            if self.get(number) == Some(pair) {
                return Some(number);
            }
        }
        None
    }

    /// Inserts a number. If another thread has inserted the pair meanwhile, it returns that number.
    fn insert(&self, table: usize, hash: u64, pair: (u64, u64), number: u32) -> Option<u32> {
        let slots = self.tables[table].get_or_alloc_dense(table_size(table))?;
        self.insert_into(slots, hash, pair, number)
    }

    /// Inserts a number into these slots of a table, as [`insert`](Self::insert) does.
    #[inline]
    fn insert_into(
        &self,
        slots: &[AtomicU32],
        hash: u64,
        pair: (u64, u64),
        number: u32,
    ) -> Option<u32> {
        for step in 0..PROBES {
            let slot = slots.get(slot_index(hash, step, slots.len()))?;
            // AcqRel: the Release publishes the pair to the Acquire of `find`, and the Acquire on
            // failure sees the pair of the other thread.
            match slot.compare_exchange(0, number, AcqRel, Acquire) {
                Ok(_) => return Some(number),
                Err(other) if self.get(other) == Some(pair) => return Some(other),
                Err(_) => {}
            }
        }
        None
    }

    fn append(&self, pair: (u64, u64)) -> Option<u32> {
        let at = self.reserve(1)?;
        store(self.pairs.get_or_alloc(at)?, pair);
        u32::try_from(at + 1).ok()
    }

    /// Reserves this many numbers in a row, for pairs from the returned index on. Returns `None` if
    /// there is no space.
    #[inline]
    fn reserve(&self, count: usize) -> Option<usize> {
        let limit = self.limit as usize;
        if self.count.load(Relaxed) + count >= limit {
            return None;
        }
        // Relaxed: the count only makes numbers unique. `insert` publishes the pairs.
        let at = self.count.fetch_add(count, Relaxed);
        (at + count < limit).then_some(at)
    }

    #[inline]
    fn grow_if_half_full(&self, newest: usize) {
        if self.len() > table_size(newest) / 2 {
            self.grow(newest);
        }
    }

    #[cold]
    fn grow(&self, newest: usize) {
        let next = newest + 1;
        if next < TABLES && self.tables[next].get_or_alloc_dense(table_size(next)).is_some() {
            // Release, with the Acquire of `intern`.
            let _ = self.newest.compare_exchange(newest, next, Release, Relaxed);
        }
    }
}

/// Stores a pair, which the insertion of its number publishes.
#[inline]
fn store([first, second]: &[AtomicU64; 2], pair: (u64, u64)) {
    first.store(pair.0, Relaxed);
    second.store(pair.1, Relaxed);
}

/// The number of slots that a look-up searches. Tables are about half full at most, so longer runs
/// are rare. A pair that finds no slot is not indexed: it gets a new number each time, until the
/// next table.
const PROBES: usize = if cfg!(loom) { 2 } else { 64 };

fn table_size(table: usize) -> usize {
    FIRST_TABLE << table
}

#[inline]
fn slot_index(hash: u64, step: usize, size: usize) -> usize {
    (hash as usize).wrapping_add(step) & (size - 1)
}

/// Hashes a pair: both words in one, then a wide multiplication whose halves are combined.
#[inline]
fn hash(pair: (u64, u64)) -> u64 {
    // The first word is a small number, the second a small number or an address. After the rotation
    // they hardly overlap.
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
        let numbers: Vec<u32> = (0..if cfg!(miri) { 200 } else { 100_000 })
            .map(|index| interner.intern(pair(index)))
            .collect();
        let different: HashMap<u32, u64> = numbers.iter().copied().zip(0..).collect();
        assert_eq!(different.len(), numbers.len());
        for (index, number) in (0..).zip(numbers) {
            assert_eq!(interner.intern(pair(index)), number);
            assert_eq!(interner.get(number), Some(pair(index)));
        }
    }

    #[test]
    fn a_list_has_the_number_of_its_last_pair() {
        let interner = Interner::new(1 << 24);
        let mut before = HashMap::new();
        let count = if cfg!(miri) { 20 } else { 3000 };
        for turn in 0..2 {
            for index in 0..count {
                // Lists share their first words, and the tables grow in the middle of them.
                let words: Vec<u64> = (0..12).map(|depth| index >> (11 - depth)).collect();
                let mut numbers = vec![0];
                let keep = |number| numbers.push(number);
                let number = interner.intern_list(0, words.iter().copied(), keep).expect("space");
                let by_pairs = words.iter().scan(0, |list, word| {
                    *list = interner.intern((u64::from(*list), *word));
                    Some(*list)
                });
                assert!(by_pairs.eq(numbers[1..].iter().copied()));
                // The number of the first words leads on.
                let (known, rest) = (index as usize % 13, |_| ());
                let after = words[known..].iter().copied();
                assert_eq!(interner.intern_list(numbers[known], after, rest), Some(number));
                assert_eq!(before.insert(words, number).unwrap_or(number), number, "{turn}");
            }
        }
        let different: HashMap<u32, &Vec<u64>> =
            before.iter().map(|(words, number)| (*number, words)).collect();
        assert_eq!(different.len(), before.len());
        assert_eq!(interner.intern_list(0, std::iter::empty(), |_| ()), Some(0));
    }

    #[test]
    fn a_full_interner_returns_zero_for_new_pairs_only() {
        let interner = Interner::new(4);
        let numbers: Vec<u32> = (0..5).map(|index| interner.intern((index, 0))).collect();
        assert_eq!(numbers, [1, 2, 3, 0, 0]);
        assert_eq!(interner.intern((1, 0)), 2);
    }

    #[test]
    fn threads_agree() {
        let interner = Interner::new(1 << 24);
        let run = || {
            (0..if cfg!(miri) { 100 } else { 20_000_u64 })
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

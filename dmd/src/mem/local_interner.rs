//! Interning of plain values for one thread, in pages of its own.
//!
//! A collection uses it, which must not change the heap that it counts.
#![expect(clippy::cast_possible_truncation, reason = "hashes are cut to the table")]

use super::pages::PageList;

/// A value that can be interned: compared and hashed.
pub(crate) trait Key: Copy + Eq {
    /// Returns two words to hash: the whole value, or enough of it to tell it from most others.
    fn words(self) -> (u64, u64);
}

/// A map from values to numbers and back. Numbers count from 0.
#[derive(Debug)]
pub(crate) struct LocalInterner<K> {
    keys: PageList<K>,
    /// An open-addressing hash table of numbers plus one; 0 is an empty slot. At most half full.
    index: PageList<u32>,
}

/// The number of slots of the first index.
const FIRST: usize = 1 << 12;

impl<K: Key> LocalInterner<K> {
    pub(crate) const fn new() -> Self {
        LocalInterner { keys: PageList::new(), index: PageList::new() }
    }

    /// Interns a value: returns its number, a new one if necessary. Returns `None` if memory is
    /// short.
    #[inline]
    pub(crate) fn intern(&mut self, key: K) -> Option<u32> {
        if self.keys.as_slice().len() * 2 >= self.index.as_slice().len() {
            self.grow()?;
        }
        let (index, keys) = (self.index.as_mut_slice(), &mut self.keys);
        let mut slot = hash(key) as usize & (index.len() - 1);
        loop {
            match index[slot].checked_sub(1) {
                Some(number) if keys.as_slice()[number as usize] == key => return Some(number),
                Some(_) => slot = (slot + 1) & (index.len() - 1),
                None => {
                    let number = keys.as_slice().len() as u32;
                    return keys.push(key).then(|| {
                        index[slot] = number + 1;
                        number
                    });
                }
            }
        }
    }

    /// Returns the number of a value, if it is interned.
    pub(crate) fn find(&self, key: K) -> Option<u32> {
        let (index, keys) = (self.index.as_slice(), self.keys.as_slice());
        let mut slot = hash(key) as usize & index.len().checked_sub(1)?;
        loop {
            let number = index[slot].checked_sub(1)?;
            if keys[number as usize] == key {
                return Some(number);
            }
            slot = (slot + 1) & (index.len() - 1);
        }
    }

    /// Returns all values, in the order of their numbers.
    pub(crate) fn keys(&self) -> &[K] {
        self.keys.as_slice()
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        let size = (self.index.as_slice().len() * 2).max(FIRST);
        let mut grown = PageList::zeros(size)?;
        let index: &mut [u32] = grown.as_mut_slice();
        for (number, key) in (1..).zip(self.keys.as_slice()) {
            let mut slot = hash(*key) as usize & (size - 1);
            while index[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            index[slot] = number;
        }
        self.index = grown;
        Some(())
    }
}

#[inline]
fn hash(key: impl Key) -> u64 {
    let (first, second) = key.words();
    let product = u128::from(first ^ 0x9e37_79b9_7f4a_7c15)
        * u128::from(second.rotate_left(29) ^ 0xd6e8_feb8_6659_fd93);
    (product >> 64) as u64 ^ product as u64
}

impl Key for u32 {
    fn words(self) -> (u64, u64) {
        (u64::from(self), 0)
    }
}

impl Key for usize {
    fn words(self) -> (u64, u64) {
        (self as u64, 0)
    }
}

impl<A: Into<u64> + Copy + Eq, B: Into<u64> + Copy + Eq> Key for (A, B) {
    fn words(self) -> (u64, u64) {
        (self.0.into(), self.1.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_has_the_same_number() {
        const COUNT: usize = if cfg!(miri) { 300 } else { 50_000 };
        let mut numbers = LocalInterner::new();
        for round in 0..2 {
            for value in 0..COUNT {
                let number = numbers.intern(value * 64).unwrap();
                assert_eq!(number as usize, value, "round {round}");
            }
        }
        assert_eq!(numbers.keys().len(), COUNT);
        let mut pairs = LocalInterner::<(u32, u64)>::new();
        assert_eq!(
            [(1, 2), (2, 1), (1, 2)].map(|pair| pairs.intern(pair)),
            [Some(0), Some(1), Some(0)]
        );
    }
}

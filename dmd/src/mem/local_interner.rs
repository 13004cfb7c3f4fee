//! LocalInterner for plain values, in pages of its own: for one thread that must not touch the program's heap.
#![expect(clippy::cast_possible_truncation, reason = "hashes are cut to the table")]

use super::pages::PageList;

/// A value that can be found again by its bits.
pub(crate) trait Key: Copy + Eq {
    /// Two words that hold all of it, or all that tells it from most others.
    fn words(self) -> (u64, u64);
}

/// Values by number and numbers by value, from 0 on.
#[derive(Debug)]
pub(crate) struct LocalInterner<K> {
    keys: PageList<K>,
    /// By hash: the number plus one; 0 is an empty place. At most half full.
    index: PageList<u32>,
}

/// The places of the first index.
const FIRST: usize = 1 << 12;

impl<K: Key> LocalInterner<K> {
    pub(crate) const fn new() -> Self {
        LocalInterner { keys: PageList::new(), index: PageList::new() }
    }

    /// The number of this value; `None` if it is new and memory is short.
    #[inline]
    pub(crate) fn number(&mut self, key: K) -> Option<u32> {
        if self.keys.as_slice().len() * 2 >= self.index.as_slice().len() {
            self.grow()?;
        }
        let (index, keys) = (self.index.as_mut_slice(), &mut self.keys);
        let mut place = hash(key) as usize & (index.len() - 1);
        loop {
            match index[place].checked_sub(1) {
                Some(number) if keys.as_slice()[number as usize] == key => return Some(number),
                Some(_) => place = (place + 1) & (index.len() - 1),
                None => {
                    let number = keys.as_slice().len() as u32;
                    return keys.push(key).then(|| {
                        index[place] = number + 1;
                        number
                    });
                }
            }
        }
    }

    /// The number of this value, if it has one.
    pub(crate) fn find(&self, key: K) -> Option<u32> {
        let (index, keys) = (self.index.as_slice(), self.keys.as_slice());
        let mut place = hash(key) as usize & index.len().checked_sub(1)?;
        loop {
            let number = index[place].checked_sub(1)?;
            if keys[number as usize] == key {
                return Some(number);
            }
            place = (place + 1) & (index.len() - 1);
        }
    }

    /// All values, in the order of their numbers.
    pub(crate) fn keys(&self) -> &[K] {
        self.keys.as_slice()
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        let size = (self.index.as_slice().len() * 2).max(FIRST);
        let mut fresh = PageList::zeros(size)?;
        let index: &mut [u32] = fresh.as_mut_slice();
        for (number, key) in (1..).zip(self.keys.as_slice()) {
            let mut place = hash(*key) as usize & (size - 1);
            while index[place] != 0 {
                place = (place + 1) & (size - 1);
            }
            index[place] = number;
        }
        self.index = fresh;
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
        let mut numbers = LocalInterner::new();
        for round in 0..2 {
            for value in 0..50_000_usize {
                let number = numbers.number(value * 64).unwrap();
                assert_eq!(number as usize, value, "round {round}");
            }
        }
        assert_eq!(numbers.keys().len(), 50_000);
        let mut pairs = LocalInterner::<(u32, u64)>::new();
        assert_eq!(
            [(1, 2), (2, 1), (1, 2)].map(|pair| pairs.number(pair)),
            [Some(0), Some(1), Some(0)]
        );
    }
}

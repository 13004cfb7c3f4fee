//! The base-32 keys by which a dump refers to stacks, reports and frames.

use crate::mem::local_interner::{Key, LocalInterner};
use crate::mem::pages::PageList;

/// The keys of traces and frames, which share one sequence.
pub(super) struct Keys {
    pub(super) next: u32,
    /// Keys by the number of the stack.
    pub(super) stacks: Keyed<u32>,
    /// Keys by the number of the report.
    pub(super) reports: Keyed<u32>,
    /// Keys by the number of the holder.
    pub(super) holders: Keyed<u32>,
    /// Keys by return address.
    pub(super) frames: Keyed<usize>,
    /// The frames of report traces, which are texts.
    pub(super) words: Vec<WordKey>,
}

/// A frame of a report trace, and its key.
pub(super) struct WordKey {
    pub(super) key: Base32,
    pub(super) word: String,
}

/// Values with their keys, in the order of the keys.
pub(super) struct Keyed<K> {
    numbers: LocalInterner<K>,
    keys: PageList<u32>,
}

impl<K: Key> Keyed<K> {
    const fn new() -> Self {
        Keyed { numbers: LocalInterner::new(), keys: PageList::new() }
    }

    /// Returns the key of a value. If memory is short, values share the first key.
    pub(super) fn key(&mut self, value: K, next: &mut u32) -> Base32 {
        let number = self.numbers.intern(value).unwrap_or(0) as usize;
        if number == self.keys.as_slice().len() && self.keys.push(*next) {
            *next += 1;
        }
        Base32(self.keys.as_slice().get(number).copied().unwrap_or(0))
    }

    pub(super) fn get(&self, index: usize) -> Option<(Base32, K)> {
        Some((Base32(*self.keys.as_slice().get(index)?), *self.numbers.keys().get(index)?))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Base32, K)> {
        (0..self.keys.as_slice().len()).map_while(|index| self.get(index))
    }

    pub(super) fn len(&self) -> usize {
        self.keys.as_slice().len()
    }
}

impl Keys {
    pub(super) const fn new() -> Self {
        Keys {
            next: 0,
            stacks: Keyed::new(),
            reports: Keyed::new(),
            holders: Keyed::new(),
            frames: Keyed::new(),
            words: Vec::new(),
        }
    }

    /// Returns the key of a frame of a report trace.
    pub(super) fn word(&mut self, word: String) -> Base32 {
        if let Some(known) = self.words.iter().find(|known| known.word == word) {
            return known.key;
        }
        let key = Base32(self.next);
        self.words.push(WordKey { key, word });
        self.next += 1;
        key
    }
}

/// A number in Mozilla's base 32, whose digits are `A` to `Z` and `a` to `f`.
#[derive(Clone, Copy)]
pub(super) struct Base32(u32);

impl std::fmt::Display for Base32 {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write as _;
        const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
        let digits = (32 - self.0.leading_zeros()).div_ceil(5).max(1);
        (0..digits).rev().try_for_each(|digit| {
            out.write_char(char::from(DIGITS[(self.0 >> (5 * digit)) as usize & 31]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_mozilla_writes_them() {
        let table = [(0, "A"), (25, "Z"), (26, "a"), (31, "f"), (32, "BA"), (1024, "BAA")];
        for (number, key) in table {
            assert_eq!(Base32(number).to_string(), key);
        }
    }
}

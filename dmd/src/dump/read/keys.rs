//! Keys of stacks and frames, numbered in the order in which they are first named.

use rustc_hash::FxHashMap;

/// Numbers keys. Keys of up to eight bytes, which is all that DMD writes, are hashed as one word.
#[derive(Debug, Default)]
pub(super) struct Keys {
    short: FxHashMap<u64, u32>,
    long: FxHashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
}

impl Keys {
    /// The number of `key`, from 0.
    pub(super) fn number(&mut self, key: &str) -> u32 {
        // A dump has fewer than 2^32 keys: each takes more than one byte of a text that is limited.
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let known = match short(key) {
            Some(word) => *self.short.entry(word).or_insert(next),
            None => match self.long.get(key) {
                Some(&number) => number,
                None => *self.long.entry(key.into()).or_insert(next),
            },
        };
        if known == next {
            self.names.push(key.into());
        }
        known
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn into_names(self) -> Vec<Box<str>> {
        self.names
    }
}

/// The bytes of a short key as one word: no two keys without a NUL share one.
fn short(key: &str) -> Option<u64> {
    let bytes = key.as_bytes();
    if bytes.len() > 8 || bytes.contains(&0) {
        return None;
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

//! A small cache before a slower look-up, for loops over blocks of which many are alike.

use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

/// The values of recent keys. A key has one place, which it shares with others.
pub(super) struct Recent<K, V> {
    entries: Box<[Option<(K, V)>]>,
}

impl<K: Copy + Eq + Hash, V: Copy> Recent<K, V> {
    const LENGTH: usize = 4096;

    pub(super) fn new() -> Self {
        Recent { entries: vec![None; Self::LENGTH].into() }
    }

    /// Returns the value of a key, if it is a recent one.
    pub(super) fn get(&self, key: K) -> Option<V> {
        let entry = self.entries[Self::place(key)]?;
        (entry.0 == key).then_some(entry.1)
    }

    /// Keeps a value, in place of the key that had its place before.
    pub(super) fn keep(&mut self, key: K, value: V) {
        self.entries[Self::place(key)] = Some((key, value));
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low bits are as good as all")]
    fn place(key: K) -> usize {
        FxBuildHasher.hash_one(key) as usize % Self::LENGTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_value_or_none() {
        let mut recent = Recent::new();
        let keys = 0..3 * Recent::<u64, u64>::LENGTH as u64;
        let mut kept = 0;
        for key in keys.clone() {
            assert_eq!(recent.get(key), None);
            recent.keep(key, 2 * key);
            assert_eq!(recent.get(key), Some(2 * key));
        }
        for key in keys {
            let value = recent.get(key);
            assert!(value.is_none_or(|value| value == 2 * key), "{key}: {value:?}");
            kept += usize::from(value.is_some());
        }
        assert!((1..=Recent::<u64, u64>::LENGTH).contains(&kept), "{kept}");
    }
}

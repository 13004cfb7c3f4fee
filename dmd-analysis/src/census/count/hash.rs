//! A fast hash map for keys that are one or two small numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are one or two small numbers of our own, so that nobody can choose them to
/// collide.
pub(super) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A hasher of one or two small numbers.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        let product = u128::from(self.0) * 0x9e37_79b9_7f4a_7c15;
        #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
        let (low, high) = (product as u64, (product >> 64) as u64);
        low ^ high
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = self.0.rotate_left(32) ^ u64::from(number);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::Hash;

    fn hash(key: impl Hash) -> u64 {
        let mut hasher = NumberHasher::default();
        key.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn different_keys_have_different_hashes() {
        let singles: HashSet<u64> = (0..1000_u64).map(hash).collect();
        assert_eq!(singles.len(), 1000);
        let pairs: HashSet<u64> =
            (0..30_u32).flat_map(|a| (0..30_u32).map(move |b| hash((a, b)))).collect();
        assert_eq!(pairs.len(), 900);
    }
}

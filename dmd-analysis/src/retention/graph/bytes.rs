//! Bytes of nodes, in half the memory of 64-bit numbers.

use rustc_hash::FxHashMap;

/// A number of bytes for each node. Few nodes retain more than 4 GiB.
#[derive(Debug)]
pub(crate) struct NodeBytes {
    /// By node: its bytes, or [`LARGE`].
    small: Vec<u32>,
    large: FxHashMap<u32, u64>,
}

/// The number that stands for bytes in [`NodeBytes::large`].
const LARGE: u32 = u32::MAX;

impl NodeBytes {
    /// Makes a table of this many nodes, of which the first have these bytes, and the others none.
    pub(crate) fn new(nodes: usize, bytes: impl Iterator<Item = u64>) -> Self {
        let mut all = Self { small: vec![0; nodes], large: FxHashMap::default() };
        bytes.zip(0..).for_each(|(bytes, node)| all.set(node, bytes));
        all
    }

    /// Returns the bytes of a node.
    #[inline]
    pub(crate) fn get(&self, node: u32) -> u64 {
        match self.small[node as usize] {
            LARGE => self.large.get(&node).copied().unwrap_or(0),
            bytes => bytes.into(),
        }
    }

    /// Adds bytes to those of a node.
    #[inline]
    pub(crate) fn add(&mut self, node: u32, bytes: u64) {
        self.set(node, self.get(node).saturating_add(bytes));
    }

    #[inline]
    fn set(&mut self, node: u32, bytes: u64) {
        let small = u32::try_from(bytes).unwrap_or(LARGE);
        self.small[node as usize] = small;
        if small == LARGE {
            self.large.insert(node, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_size_add_up() {
        let limit = u64::from(u32::MAX);
        let first = [0, 1, limit - 1, limit, limit + 1, u64::MAX];
        let mut bytes = NodeBytes::new(first.len() + 1, first.into_iter());
        let all = |bytes: &NodeBytes| -> Vec<_> { (0..7).map(|node| bytes.get(node)).collect() };
        assert_eq!(all(&bytes), [0, 1, limit - 1, limit, limit + 1, u64::MAX, 0]);
        (0..7).for_each(|node| bytes.add(node, 1));
        assert_eq!(all(&bytes), [1, 2, limit, limit + 1, limit + 2, u64::MAX, 1]);
        bytes.add(0, 1 << 40);
        bytes.add(0, 5);
        assert_eq!(bytes.get(0), (1 << 40) + 6);
    }
}

//! Sets of nodes, in a bit for each node.

/// A set of nodes.
#[derive(Debug)]
pub(crate) struct NodeSet {
    /// A bit for each node, of the lowest nodes first.
    words: Vec<u64>,
}

/// The nodes of a set, numbered in ascending order.
#[derive(Debug)]
pub(crate) struct Numbering {
    set: NodeSet,
    /// By word of the set: the number of nodes in the words before.
    before: Vec<u32>,
}

impl NodeSet {
    /// Makes an empty set of nodes below a limit.
    pub(crate) fn new(limit: usize) -> Self {
        Self { words: vec![0; limit.div_ceil(64)] }
    }

    /// Adds a node. Returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, node: u32) -> bool {
        let (at, bit) = place(node);
        let is_new = self.words[at] & bit == 0;
        self.words[at] |= bit;
        is_new
    }

    /// Returns whether the set has a node. It has none from the limit on.
    #[inline]
    pub(crate) fn contains(&self, node: u32) -> bool {
        let (at, bit) = place(node);
        self.words.get(at).is_some_and(|word| word & bit != 0)
    }

    /// Returns the nodes in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().zip((0_u32..).step_by(64)).flat_map(|(&word, first)| {
            let rest = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
            rest.take_while(|rest| *rest != 0).map(move |rest| first + rest.trailing_zeros())
        })
    }
}

/// Returns the index of a node's word, and its bit there.
fn place(node: u32) -> (usize, u64) {
    (node as usize / 64, 1 << (node % 64))
}

impl Numbering {
    /// Numbers the nodes of a set.
    pub(crate) fn new(set: NodeSet) -> Self {
        let before = set.words.iter().scan(0, |sum, word| {
            let before = *sum;
            *sum += word.count_ones();
            Some(before)
        });
        let before = before.collect();
        Self { set, before }
    }

    /// Returns how many nodes have a number.
    pub(crate) fn len(&self) -> usize {
        let last = self.set.words.last().map_or(0, |word| word.count_ones());
        self.before.last().map_or(0, |before| before + last) as usize
    }

    /// Returns whether a node has a number.
    #[inline]
    pub(crate) fn contains(&self, node: u32) -> bool {
        self.set.contains(node)
    }

    /// Returns the number of a node, if it has one.
    #[inline]
    pub(crate) fn get(&self, node: u32) -> Option<u32> {
        self.contains(node).then(|| self.number(node))
    }

    /// Returns the number of a node of the set.
    #[inline]
    pub(crate) fn number(&self, node: u32) -> u32 {
        let (at, bit) = place(node);
        self.before[at] + (self.set.words[at] & (bit - 1)).count_ones()
    }

    /// Returns the nodes in the order of their numbers.
    pub(crate) fn nodes(&self) -> Vec<u32> {
        self.set.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_in_ascending_order() {
        let mut set = NodeSet::new(300);
        let is_new = [299, 0, 63, 64, 128, 65, 64].map(|node| set.insert(node));
        assert_eq!(is_new, [true, true, true, true, true, true, false]);
        assert!(set.contains(128) && !set.contains(127));
        let nodes = [0, 63, 64, 65, 128, 299];
        assert!(set.iter().eq(nodes));
        let numbering = Numbering::new(set);
        assert_eq!((numbering.nodes(), numbering.len()), (nodes.to_vec(), nodes.len()));
        assert_eq!([62, 319, 320].map(|node| numbering.get(node)), [None; 3]);
        for (node, number) in nodes.into_iter().zip(0..) {
            assert!(numbering.contains(node));
            assert_eq!((numbering.number(node), numbering.get(node)), (number, Some(number)));
        }
    }
}

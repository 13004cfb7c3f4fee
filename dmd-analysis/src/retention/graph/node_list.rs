//! Lists of nodes that are read from the beginning to the end, packed as addresses are: most nodes
//! are neighbours of the one before, and take a byte or two.

use crate::analysis::{AddressPlace, Addresses};

/// A list of nodes.
#[derive(Debug, Default)]
pub(crate) struct NodeList {
    nodes: Addresses,
    len: usize,
}

impl NodeList {
    /// Adds a node at the end.
    pub(crate) fn push(&mut self, node: u32) {
        self.nodes.push(node.into());
        self.len += 1;
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the nodes in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let mut place = AddressPlace::default();
        std::iter::from_fn(move || self.next(&mut place))
    }

    /// Returns the place behind the last node.
    pub(crate) fn end(&self) -> AddressPlace {
        self.nodes.end()
    }

    /// Returns the node at a place, and moves the place behind it.
    pub(crate) fn next(&self, place: &mut AddressPlace) -> Option<u32> {
        let node = self.nodes.next(place)?;
        // Only nodes were added.
        Some(u32::try_from(node).unwrap_or(u32::MAX))
    }
}

impl FromIterator<u32> for NodeList {
    fn from_iter<N: IntoIterator<Item = u32>>(nodes: N) -> Self {
        let mut list = Self::default();
        nodes.into_iter().for_each(|node| list.push(node));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_back_in_their_order() {
        let nodes = [0, 1, 2, 66, 1, 5_000_000, 4_999_999, u32::MAX - 1, 0, 0, 3];
        let (before, after) = nodes.split_at(5);
        let mut list: NodeList = before.iter().copied().collect();
        let mut middle = list.end();
        after.iter().for_each(|&node| list.push(node));
        assert_eq!(list.iter().collect::<Vec<_>>(), nodes);
        let rest: Vec<u32> = std::iter::from_fn(|| list.next(&mut middle)).collect();
        assert_eq!((rest.as_slice(), list.len()), (after, nodes.len()));
    }
}

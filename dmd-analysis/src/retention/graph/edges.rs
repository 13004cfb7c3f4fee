//! The edges of a graph whose tree of dominators is known.
//!
//! The nearest dominator of a node with one source is that source, so the tree has the edges to
//! such nodes. Only those to nodes with several sources are stored once more.

use super::Neighbours;
use super::dominators::Dominators;
use super::edge_list::{Edge, EdgeList};
use super::nodes::{NodeSet, Numbering};

/// The edges to nodes with several sources.
#[derive(Debug)]
pub(crate) struct SharedEdges {
    /// The nodes with several sources.
    by_target: Rows,
    /// The sources of these nodes.
    by_source: Rows,
}

/// The nodes that have edges of one direction, and the nodes at the other ends.
#[derive(Debug)]
struct Rows {
    nodes: Numbering,
    others: Neighbours,
}

impl Rows {
    /// Sorts edges by their first nodes. Those of one node come in the opposite order.
    fn new(limit: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut nodes = NodeSet::new(limit);
        edges.clone().for_each(|(node, _)| _ = nodes.insert(node));
        let nodes = Numbering::new(nodes);
        let edges = edges.map(|(node, other)| (nodes.number(node), other));
        let others = Neighbours::of_edges(nodes.len(), edges);
        Self { nodes, others }
    }

    fn of(&self, node: u32) -> &[u32] {
        self.nodes.get(node).map_or(&[], |number| self.others.of(number))
    }
}

impl SharedEdges {
    /// Makes the edges of a graph with this number of nodes.
    pub(crate) fn new(nodes: usize, edges: EdgeList) -> Self {
        let edges = edges.into_sorted();
        let backwards = edges.iter().rev();
        let by_target = backwards.clone().map(|&Edge { to, from }| (to, from));
        let by_source = backwards.map(|&Edge { to, from }| (from, to));
        Self { by_target: Rows::new(nodes, by_target), by_source: Rows::new(nodes, by_source) }
    }
}

/// The edges of a graph. Every node can be reached from the root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edges<'g> {
    dominators: &'g Dominators,
    shared: &'g SharedEdges,
}

impl<'g> Edges<'g> {
    /// Makes a graph of its tree of dominators, and of its edges to nodes with several sources.
    pub(crate) fn new(dominators: &'g Dominators, shared: &'g SharedEdges) -> Self {
        Self { dominators, shared }
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.dominators.len()
    }

    /// Returns the nodes that a node points at, each once, in ascending order.
    pub(crate) fn targets(&self, node: u32) -> impl Iterator<Item = u32> + use<'g> {
        let Self { dominators, shared } = *self;
        let has_one_source = move |child: &u32| shared.by_target.nodes.get(*child).is_none();
        let mut only = dominators.children(node).filter(has_one_source).peekable();
        let mut others = shared.by_source.of(node).iter().copied().peekable();
        std::iter::from_fn(move || match (only.peek(), others.peek()) {
            (Some(one), Some(other)) if other < one => others.next(),
            (None, _) => others.next(),
            _ => only.next(),
        })
    }

    /// Returns whether a node points at any.
    pub(crate) fn has_targets(&self, node: u32) -> bool {
        self.dominators.is_parent(node) || self.source_of_shared(node).is_some()
    }

    /// Returns the only source of a node; `None` if it has none or several.
    pub(crate) fn only_source(&self, node: u32) -> Option<u32> {
        if self.shared_target(node).is_some() { None } else { self.dominators.parent(node) }
    }

    /// Returns the sources of a node that has several, in ascending order.
    pub(crate) fn several_sources(&self, node: u32) -> &'g [u32] {
        self.shared.by_target.of(node)
    }

    /// Returns the number of nodes with several sources.
    pub(crate) fn shared_targets(&self) -> usize {
        self.shared.by_target.nodes.len()
    }

    /// Returns the position of a node among all nodes with several sources, if it is one.
    pub(crate) fn shared_target(&self, node: u32) -> Option<u32> {
        self.shared.by_target.nodes.get(node)
    }

    /// Returns the number of nodes that point at a node with several sources.
    pub(crate) fn sources_of_shared(&self) -> usize {
        self.shared.by_source.nodes.len()
    }

    /// Returns the position of a node among all nodes that point at one with several sources, if it
    /// is one of them.
    pub(crate) fn source_of_shared(&self, node: u32) -> Option<u32> {
        self.shared.by_source.nodes.get(node)
    }

    /// Marks the nodes that can be reached from `start` through unmarked nodes, `start` included.
    pub(crate) fn reach(&self, start: u32, marked: &mut NodeSet) {
        let mut pending = Vec::new();
        let mut meet = |node: u32, pending: &mut Vec<u32>| {
            if marked.insert(node) && self.has_targets(node) {
                pending.push(node);
            }
        };
        meet(start, &mut pending);
        while let Some(node) = pending.pop() {
            self.targets(node).for_each(|target| meet(target, &mut pending));
        }
    }
}

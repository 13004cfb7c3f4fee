//! Lists of edges, which forget duplicates now and then, so that these take little memory.

/// An edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) to: u32,
    pub(crate) from: u32,
}

/// Edges, some of them more than once.
#[derive(Debug)]
pub(crate) struct EdgeList {
    edges: Vec<Edge>,
    /// The number of edges at which duplicates are removed.
    dedup_at: usize,
}

/// The smallest number of edges at which duplicates are removed.
const LEAST_DEDUP: usize = if cfg!(test) { 8 } else { 1 << 20 };

impl EdgeList {
    /// Makes an empty list.
    pub(crate) fn new() -> Self {
        Self { edges: Vec::new(), dedup_at: LEAST_DEDUP }
    }

    /// Adds an edge, unless it is the last one.
    pub(crate) fn add(&mut self, edge: Edge) {
        if self.edges.last() == Some(&edge) {
            return;
        }
        if self.edges.len() >= self.dedup_at {
            self.remove_duplicates();
            self.dedup_at = (2 * self.edges.len()).max(LEAST_DEDUP);
        }
        self.edges.push(edge);
    }

    /// Returns the edges in any order, some of them more than once.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Edge> + Clone {
        self.edges.iter().copied()
    }

    /// Returns the edges in the order of their targets and then of their sources, each once.
    pub(crate) fn into_sorted(mut self) -> Vec<Edge> {
        self.remove_duplicates();
        self.edges
    }

    fn remove_duplicates(&mut self) {
        self.edges.sort_unstable();
        self.edges.dedup();
    }
}

//! The sources of each node. Most blocks of a heap have one source, so a node takes one number
//! here, where its edges in a graph take several.

mod cycles;
mod dominators;
mod reached;

pub(crate) use dominators::Nearest;

use super::NONE;
use super::edge_list::{Edge, EdgeList};

/// The sources of all nodes.
#[derive(Debug)]
pub(crate) struct Sources {
    /// By node: its only source, [`NONE`] if it has none, or [`SEVERAL`].
    only: Vec<u32>,
    /// The edges to nodes with several sources, some of them more than once.
    edges: EdgeList,
}

/// The number that stands for several sources.
pub(crate) const SEVERAL: u32 = NONE - 1;

impl Sources {
    /// Makes nodes without sources.
    pub(crate) fn new(nodes: usize) -> Self {
        Self { only: vec![NONE; nodes], edges: EdgeList::new() }
    }

    /// Makes nodes with these sources: the only one of each, [`NONE`], or [`SEVERAL`], and the
    /// edges to those with several.
    pub(crate) fn of(only: Vec<u32>, several: impl Iterator<Item = Edge>) -> Self {
        let mut edges = EdgeList::new();
        several.for_each(|edge| edges.add(edge));
        Self { only, edges }
    }

    /// Returns the only source of each node, [`NONE`], or [`SEVERAL`].
    pub(crate) fn into_only(self) -> Vec<u32> {
        self.only
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.only.len()
    }

    /// Adds a node without sources. Returns its number.
    pub(crate) fn add_node(&mut self) -> u32 {
        self.only.push(NONE);
        u32::try_from(self.only.len() - 1).unwrap_or(NONE)
    }

    /// Adds an edge, unless it already exists.
    #[inline]
    pub(crate) fn add(&mut self, from: u32, to: u32) {
        match self.only[to as usize] {
            NONE => self.only[to as usize] = from,
            SEVERAL => self.edges.add(Edge { to, from }),
            only if only == from => {}
            only => {
                self.only[to as usize] = SEVERAL;
                self.edges.add(Edge { to, from: only });
                self.edges.add(Edge { to, from });
            }
        }
    }

    /// Returns the nodes without a source, in ascending order.
    pub(crate) fn heads(&self) -> impl Iterator<Item = u32> {
        let nodes = self.only.iter().zip(0..);
        nodes.filter(|(only, _)| **only == NONE).map(|(_, node)| node)
    }

    /// Returns the only source of a node; `None` if it has none or several.
    #[inline]
    fn only(&self, node: u32) -> Option<u32> {
        Some(self.only[node as usize]).filter(|&only| only < SEVERAL)
    }
}

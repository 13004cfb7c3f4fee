//! Dominators, by the sources of nodes.
//!
//! The nearest dominator of a node with one source is that source. To find those of nodes with
//! several sources, a short graph is enough: it has these nodes and their sources, and of the nodes
//! between them only those from which several ways lead on.

use crate::retention::NONE;
use crate::retention::graph::Graph;
use crate::retention::graph::dominators::nearest_dominators;
use crate::retention::graph::nodes::{NodeSet, Numbering};

use super::{SEVERAL, Sources};

/// The nearest dominators of all nodes.
#[derive(Debug)]
pub(crate) struct Nearest {
    /// By node: its nearest dominator, or [`NONE`] for the root.
    pub(crate) of: Vec<u32>,
    /// The nodes with several sources.
    pub(crate) several: NodeSet,
}

impl Sources {
    /// Finds the nearest dominators. The root must be the only node without a source, and reach all
    /// others.
    pub(crate) fn into_dominators(self, root: u32) -> Nearest {
        let short = Numbering::new(self.short(root));
        let nodes = short.nodes();
        let before = nodes.iter().map(|&node| self.before(node, &short));
        let before: Vec<u32> = before.collect();
        let Self { only: mut of, edges, .. } = self;
        let ways = before.iter().copied().zip(0..).filter(|(before, _)| *before != NONE);
        let others = edges.iter().map(|edge| (short.number(edge.from), short.number(edge.to)));
        let graph = Graph::of_edges(nodes.len(), ways.chain(others));
        drop((before, edges));
        let nearest = nearest_dominators(graph, short.number(root));
        let mut several = NodeSet::new(of.len());
        for (&node, &number) in nodes.iter().zip(&nearest) {
            if of[node as usize] == SEVERAL {
                several.insert(node);
                of[node as usize] = nodes.get(number as usize).copied().unwrap_or(NONE);
            }
        }
        Nearest { of, several }
    }

    /// Returns the number of the nearest node of the short graph on the way back from a node with
    /// one source; [`NONE`] for other nodes.
    fn before(&self, node: u32, short: &Numbering) -> u32 {
        let Some(mut at) = self.only(node) else { return NONE };
        while let Some(source) = self.only(at).filter(|_| !short.contains(at)) {
            at = source;
        }
        short.number(at)
    }

    /// Returns the nodes of the short graph.
    fn short(&self, root: u32) -> NodeSet {
        let (mut short, mut passed) = (NodeSet::new(self.len()), NodeSet::new(self.len()));
        short.insert(root);
        for edge in &self.edges {
            short.insert(edge.to);
            short.insert(edge.from);
            // Back to the first node that another way has passed: there they part.
            let mut at = edge.from;
            while passed.insert(at) {
                match self.only(at) {
                    Some(source) => at = source,
                    None => break,
                }
            }
            short.insert(at);
        }
        short
    }
}

//! Dominators, by the sources of nodes.
//!
//! The nearest dominator of a node with one source is that source. To find those of nodes with
//! several sources, a contracted graph is enough: it has these nodes and their sources, and of the
//! nodes between them only those at which paths branch.

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
    /// Finds the nearest dominators. The root must have no source. Nodes that it does not reach
    /// have their only source, or [`NONE`].
    pub(crate) fn into_dominators(self, root: u32) -> Nearest {
        let contracted = Numbering::new(self.contracted(root));
        let nodes = contracted.nodes();
        let graph = self.contracted_graph(&contracted, &nodes);
        let Self { only: mut of, edges } = self;
        drop(edges);
        let nearest = nearest_dominators(graph, contracted.number(root));
        let mut several = NodeSet::new(of.len());
        for (&node, &number) in nodes.iter().zip(&nearest) {
            if of[node as usize] == SEVERAL {
                several.insert(node);
                of[node as usize] = nodes.get(number as usize).copied().unwrap_or(NONE);
            }
        }
        Nearest { of, several }
    }

    /// Makes the graph of these nodes of the contracted graph, by their numbers.
    pub(super) fn contracted_graph(&self, contracted: &Numbering, nodes: &[u32]) -> Graph {
        let before = nodes.iter().map(|&node| self.before(node, contracted));
        let before: Vec<u32> = before.collect();
        let paths = before.iter().copied().zip(0..).filter(|(before, _)| *before != NONE);
        let number = |node: u32| contracted.number(node);
        let others = self.edges.iter().map(|edge| (number(edge.from), number(edge.to)));
        Graph::of_edges(nodes.len(), paths.chain(others))
    }

    /// Returns the number of the nearest node of the contracted graph on the path back from a node
    /// with one source; [`NONE`] for other nodes.
    fn before(&self, node: u32, contracted: &Numbering) -> u32 {
        let Some(mut at) = self.only(node) else { return NONE };
        while let Some(source) = self.only(at).filter(|_| !contracted.contains(at)) {
            at = source;
        }
        contracted.number(at)
    }

    /// Returns the nodes of the contracted graph.
    pub(super) fn contracted(&self, root: u32) -> NodeSet {
        let (mut contracted, mut passed) = (NodeSet::new(self.len()), NodeSet::new(self.len()));
        contracted.insert(root);
        for edge in self.edges.iter() {
            contracted.insert(edge.to);
            contracted.insert(edge.from);
            // Back to the first node that another path has passed: there they branch.
            let mut at = edge.from;
            while passed.insert(at) {
                match self.only(at) {
                    Some(source) => at = source,
                    None => break,
                }
            }
            contracted.insert(at);
        }
        contracted
    }
}

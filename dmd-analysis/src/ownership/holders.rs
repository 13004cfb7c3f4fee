//! The holder of each block: of its strongest pointers, the nearest node that all of them come
//! through.

use crate::retention::graph::dominators::Dominators;
use crate::retention::graph::{Builder, Graph};

use super::claims::{Claims, Edge, Rank};
use super::roots::Roots;
use super::shape::{LabelId, Strength};

/// The tree of holders.
pub(super) struct Holders {
    pub(super) dominators: Dominators,
    pub(super) root: u32,
    /// The strongest pointers to each block, sorted by the block.
    edges: Vec<Edge>,
}

impl Holders {
    /// Finds the holders of all blocks.
    pub(super) fn new(claims: &mut Claims<'_, '_, '_>, roots: &Roots<'_>) -> Self {
        let mut all = std::mem::take(&mut claims.edges);
        all.sort_unstable_by_key(|edge| (edge.to, claim(edge, claims), edge.from, edge.label));
        let mut strongest = all.clone();
        let mut of = None;
        strongest.retain(|edge| {
            let now = claim(edge, claims);
            match of {
                Some((to, best)) if to == edge.to => best == now,
                _ => {
                    of = Some((edge.to, now));
                    true
                }
            }
        });
        let first = graph(&strongest, roots);
        let mut reached = vec![false; first.len()];
        first.reach(roots.external, &mut reached);
        // A circle of strong pointers hangs on the pointer by which it was reached.
        let mut edges = strongest;
        for &block in &claims.order {
            if !reached[block as usize] {
                let from = claims.reached_from[block as usize];
                let known = all.partition_point(|edge| edge.to < block);
                let mut into = all[known..].iter().take_while(|edge| edge.to == block);
                edges.extend(into.find(|edge| edge.from == from));
                first.reach(block, &mut reached);
            }
        }
        edges.sort_unstable_by_key(|edge| (edge.to, edge.strength, edge.from, edge.label));
        let root = roots.external;
        let dominators = Dominators::new(&graph(&edges, roots), root);
        Self { dominators, root, edges }
    }

    /// Returns the label of the pointer from one node to a block, if there is one.
    pub(super) fn label(&self, from: u32, block: u32) -> Option<LabelId> {
        let first = self.edges.partition_point(|edge| edge.to < block);
        let mut into = self.edges[first..].iter().take_while(|edge| edge.to == block);
        into.find(|edge| edge.from == from).map(|edge| edge.label)
    }

    /// Returns whether only words that look like pointers lead to a block.
    pub(super) fn is_by_words(&self, block: u32) -> bool {
        let first = self.edges.partition_point(|edge| edge.to < block);
        let mut into = self.edges[first..].iter().take_while(|edge| edge.to == block);
        into.all(|edge| edge.label == LabelId::WORD)
    }
}

/// Returns the claim of a pointer, the best first. Between owners, the way from the root counts
/// more than the strength: a stale pointer in a buffer of unknown length may look like an owner.
fn claim(edge: &Edge, claims: &Claims<'_, '_, '_>) -> (Option<Strength>, Rank, Strength) {
    let weak = Some(edge.strength).filter(|strength| *strength > Strength::Shared);
    (weak, claims.rank(edge.from), edge.strength)
}

fn graph(edges: &[Edge], roots: &Roots<'_>) -> Graph {
    let mut sorted: Vec<(u32, u32)> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let sources = roots.first..roots.external;
    sorted.extend(sources.map(|source| (roots.external, source)));
    sorted.sort_unstable();
    let mut builder = Builder::default();
    sorted.into_iter().for_each(|(from, to)| builder.add(from, to));
    builder.finish(roots.nodes())
}

//! Cycles of strong pointers: each hangs on the pointer by which it was reached.

use crate::ownership::claims::{Claims, Edge};
use crate::retention::graph::Graph;
use crate::retention::graph::node_list::Place;
use crate::retention::graph::nodes::{NodeSet, Numbering};

use super::strongest::{Claim, Strongest};

/// Adds a pointer to each cycle that the strongest pointers do not lead to from the root.
pub(super) fn hang(strongest: &mut Strongest, claims: &mut Claims<'_, '_, '_>, root: u32) {
    let left = left(strongest, claims, root);
    if left.len() == 0 {
        return;
    }
    let mut edges = Vec::new();
    for (node, number) in left.nodes().into_iter().zip(0..) {
        strongest.each_source(node, |from| {
            edges.extend(left.get(from).map(|from| (from, number)));
        });
    }
    let graph = Graph::of_edges(left.len(), edges.iter().copied());
    drop(edges);
    let mut marked = vec![false; left.len()];
    let mut hung = Vec::new();
    let mut place = Place::default();
    while let Some(block) = claims.order.next(&mut place) {
        let Some(number) = left.get(block).filter(|&number| !marked[number as usize]) else {
            continue;
        };
        hung.extend(pointer(strongest.reached_from(block), block, claims));
        graph.reach(number, &mut marked);
    }
    strongest.add_weaker(&hung);
}

/// Returns the blocks that the strongest pointers do not lead to.
fn left(strongest: &mut Strongest, claims: &Claims<'_, '_, '_>, root: u32) -> Numbering {
    let sources = strongest.take_sources();
    let reached = sources.reached(root);
    let mut left = NodeSet::new(sources.len());
    strongest.only = sources.into_only();
    for block in claims.order.iter() {
        if !reached.contains(block) {
            left.insert(block);
        }
    }
    Numbering::new(left)
}

/// Returns the best pointer from one node to a block, if there is one.
fn pointer(from: u32, block: u32, claims: &mut Claims<'_, '_, '_>) -> Option<Edge> {
    let mut best: Option<(Claim, Edge)> = None;
    claims.each_edge_of(from, &mut |claims, edge| {
        let claim = Claim::of(claims.rank(from), edge.strength);
        let is_better = |known: (Claim, Edge)| (claim, edge.label) < (known.0, known.1.label);
        if edge.to == block && best.is_none_or(is_better) {
            best = Some((claim, edge));
        }
    });
    best.map(|(_, edge)| edge)
}

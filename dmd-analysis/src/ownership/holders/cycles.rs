//! Cycles of strong pointers: each hangs on the pointer by which it was reached.

use crate::analysis::AddressPlace;
use crate::ownership::claims::{Claims, Edge};
use crate::retention::graph::Graph;
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
    let mut place = AddressPlace::default();
    while let Some(block) = claims.order.next(&mut place) {
        let Some(number) = left.get(block).filter(|&number| !marked[number as usize]) else {
            continue;
        };
        hung.push((strongest.reached_from(block), block));
        graph.reach(number, &mut marked);
    }
    hung.sort_unstable();
    let by_holder = hung.chunk_by(|a, b| a.0 == b.0);
    let edges: Vec<Edge> = by_holder.flat_map(|hung| pointers(hung, claims)).collect();
    strongest.add_weaker(&edges);
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

/// Returns the best pointer from one node to each of some blocks, of those to which it has one. A
/// large holder may have pointers to many, so its words are read once.
fn pointers(hung: &[(u32, u32)], claims: &mut Claims<'_, '_, '_>) -> Vec<Edge> {
    let Some(&(from, _)) = hung.first() else { return Vec::new() };
    let mut best: Vec<Option<(Claim, Edge)>> = vec![None; hung.len()];
    claims.each_edge_of(from, &mut |claims, edge| {
        let Ok(at) = hung.binary_search(&(from, edge.to)) else { return };
        let claim = Claim::of(claims.rank(from), edge.strength);
        let is_better = |known: (Claim, Edge)| (claim, edge.label) < (known.0, known.1.label);
        if best[at].is_none_or(is_better) {
            best[at] = Some((claim, edge));
        }
    });
    best.into_iter().flatten().map(|(_, edge)| edge).collect()
}

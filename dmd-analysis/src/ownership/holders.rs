//! The holder of each block: of its strongest pointers, the nearest node that all of them come
//! through.

mod handles;

use rustc_hash::FxHashSet;

use crate::analysis::scan::links::BlockRanges;
use crate::retention::graph::Graph;
use crate::retention::graph::dominators::Dominators;
use crate::retention::graph::sources::Sources;

use self::handles::Handle;
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
    pub(super) fn new(
        ranges: &BlockRanges<'_>,
        claims: &mut Claims<'_, '_, '_>,
        roots: &Roots<'_>,
    ) -> Self {
        let mut edges = std::mem::take(&mut claims.edges);
        edges.sort_unstable_by_key(|edge| (edge.to, claim(edge, claims), edge.from, edge.label));
        let mut of = None;
        // By edge: whether it is kept. There may be as many as words in the heap, so that they
        // are in memory once.
        let mut kept: Vec<bool> = Vec::with_capacity(edges.len());
        for edge in &edges {
            let now = claim(edge, claims);
            let best = of.filter(|(to, _)| *to == edge.to).map_or(now, |(_, best)| best);
            of = Some((edge.to, best));
            kept.push(best == now);
        }
        let first = graph(of_kept(&edges, &kept), roots, &[]);
        let mut reached = vec![false; first.len()];
        first.reach(roots.external, &mut reached);
        // A cycle of strong pointers hangs on the pointer by which it was reached.
        for &block in &claims.order {
            if !reached[block as usize] {
                let from = claims.reached_from[block as usize];
                let known = edges.partition_point(|edge| edge.to < block);
                let mut into = edges[known..].iter().take_while(|edge| edge.to == block);
                if let Some(at) = into.position(|edge| edge.from == from) {
                    kept[known + at] = true;
                }
                first.reach(block, &mut reached);
            }
        }
        drop(first);
        claims.keep_layouts();
        let mut kept = kept.into_iter();
        edges.retain(|_| kept.next().unwrap_or(false));
        edges.shrink_to_fit();
        edges.sort_unstable_by_key(|edge| (edge.to, edge.strength, edge.from, edge.label));
        let root = roots.external;
        let handles = with_roots(handles::find(ranges, roots), &edges, roots);
        let mut sources = Sources::new(roots.nodes());
        let of_roots = of_roots(roots, &handles);
        let all = edges.iter().map(Edge::ends).chain(of_roots);
        all.for_each(|(from, to)| sources.add(from, to));
        let dominators = Dominators::new(sources.into_dominators(root).of);
        Self { dominators, root, edges }
    }

    /// Returns the strongest pointers to each block, sorted by the block.
    pub(super) fn edges(&self) -> &[Edge] {
        &self.edges
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

/// Returns the claim of a pointer, the best first. What a root leads to is not leaked, whatever
/// else holds it. Between owners, the way from the root counts more than the strength: a stale
/// pointer in a buffer of unknown length may look like an owner.
fn claim(edge: &Edge, claims: &Claims<'_, '_, '_>) -> (bool, Option<Strength>, Rank, Strength) {
    let weak = Some(edge.strength).filter(|strength| *strength > Strength::Shared);
    let rank = claims.rank(edge.from);
    (rank == Rank::Unrooted, weak, rank, edge.strength)
}

fn of_kept<'e>(edges: &'e [Edge], kept: &'e [bool]) -> impl Iterator<Item = &'e Edge> + Clone {
    edges.iter().zip(kept).filter(|(_, is_kept)| **is_kept).map(|(edge, _)| edge)
}

/// Adds a handle of the external root for each thread whose own handles are in memory that only the
/// thread leads to.
fn with_roots(mut handles: Vec<Handle>, edges: &[Edge], roots: &Roots<'_>) -> Vec<Handle> {
    if handles.is_empty() {
        return handles;
    }
    let graph = graph(edges.iter(), roots, &handles);
    let mut reached = vec![false; graph.len()];
    graph.reach(roots.external, &mut reached);
    for at in 0..handles.len() {
        let thread = handles[at].thread;
        if !reached[thread as usize] {
            handles.push(Handle { from: roots.external, thread });
            graph.reach(thread, &mut reached);
        }
    }
    handles
}

/// Builds the graph of pointers and roots.
fn graph<'e>(
    edges: impl Iterator<Item = &'e Edge> + Clone,
    roots: &Roots<'_>,
    handles: &[Handle],
) -> Graph {
    let of_roots = of_roots(roots, handles);
    Graph::of_edges(roots.nodes(), edges.map(Edge::ends).chain(of_roots.iter().copied()))
}

/// Returns the edges to the roots. A thread with a handle hangs on its handles alone.
fn of_roots(roots: &Roots<'_>, handles: &[Handle]) -> Vec<(u32, u32)> {
    let with_handle: FxHashSet<u32> = handles.iter().map(|handle| handle.thread).collect();
    let sources = roots.sources.iter().zip(roots.first..);
    let sources = sources.filter(|(_, node)| !with_handle.contains(node));
    let sources = sources.map(|(source, node)| (roots.holder_of(source), node));
    let handles = handles.iter().map(|handle| (handle.from, handle.thread));
    sources.chain(handles).collect()
}

//! Measures graphs of `petgraph`. A `Graph` is *exact*. A `StableGraph` and a `GraphMap` are *exact
//! with the tracker*; without it a *formula*: their capacities.
#![expect(unsafe_code, reason = "vouches for the blocks of nodes and edges")]

use core::hash::BuildHasher;

use petgraph::EdgeType;
use petgraph::graph::{Edge, EdgeIndex, Graph, IndexType, Node, NodeIndex};
use petgraph::graphmap::{GraphMap, NodeTrait};
use petgraph::stable_graph::StableGraph;

use super::sequence::elements;
use super::table::{is_table, table_size};
use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(petgraph::Directed, petgraph::Undirected, petgraph::Direction);

impl<Ix: IndexType> MallocSizeOf for NodeIndex<Ix> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

impl<Ix: IndexType> MallocSizeOf for EdgeIndex<Ix> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

impl<N: MallocSizeOf, E: MallocSizeOf, Ty: EdgeType, Ix: IndexType> MallocSizeOf
    for Graph<N, E, Ty, Ix>
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let (nodes, edges) = self.capacity();
        // SAFETY: the nodes are a vector of that capacity, borrowed as a slice.
        unsafe { elements(ops, self.raw_nodes().as_ptr(), nodes) };
        // SAFETY: the edges are too.
        unsafe { elements(ops, self.raw_edges().as_ptr(), edges) };
        ops.add_with(self, |graph, ops| {
            graph.node_weights().for_each(|weight| weight.add_size_of_excluding_this(ops));
            graph.edge_weights().for_each(|weight| weight.add_size_of_excluding_this(ops));
        });
    }
}

impl<N: MallocSizeOf, E: MallocSizeOf, Ty: EdgeType, Ix: IndexType> MallocSizeOf
    for StableGraph<N, E, Ty, Ix>
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let (nodes, edges) = self.capacity();
        let nodes = nodes.saturating_mul(size_of::<Node<Option<N>, Ix>>());
        let edges = edges.saturating_mul(size_of::<Edge<Option<E>, Ix>>());
        let is_own = |offset, requested| offset == 0 && [nodes, edges].contains(&requested);
        ops.blocks_by_words(words_of(self), is_own, nodes.saturating_add(edges));
        ops.add_with(self, |graph, ops| {
            graph.node_weights().for_each(|weight| weight.add_size_of_excluding_this(ops));
            graph.edge_weights().for_each(|weight| weight.add_size_of_excluding_this(ops));
        });
    }
}

/// Nodes are `Copy`, so they own nothing. Each has a list of neighbours.
impl<N: NodeTrait, E: MallocSizeOf, Ty: EdgeType, S: BuildHasher> MallocSizeOf
    for GraphMap<N, E, Ty, S>
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let (nodes, edges) = self.capacity();
        let node = nodes.saturating_mul(size_of::<(usize, N, Vec<N>)>());
        let edge = edges.saturating_mul(size_of::<(usize, N, N, E)>());
        let tables = table_size::<usize>(nodes) + table_size::<usize>(edges);
        let is_own = |offset, requested| {
            is_table::<usize>(offset, requested)
                || (offset == 0 && requested % size_of::<(usize, N, Vec<N>)>() == 0)
                || (offset == 0 && requested % size_of::<(usize, N, N, E)>() == 0)
        };
        let bytes = node.saturating_add(edge).saturating_add(tables);
        ops.blocks_by_words(words_of(self), is_own, bytes);
        ops.add_with(self, |graph, ops| {
            for node in graph.nodes() {
                // The iterator over a node's neighbours begins at the start of their list.
                let neighbours = graph.neighbors(node);
                let is_list = |offset, _| offset == 0;
                if !ops.block_by_words(words_of(&neighbours), is_list)
                    && !ops.finds_enclosing_blocks()
                {
                    ops.computed(neighbours.count().saturating_mul(size_of::<(N, bool)>()));
                }
            }
            graph.all_edges().for_each(|(_, _, weight)| weight.add_size_of_excluding_this(ops));
        });
    }
}

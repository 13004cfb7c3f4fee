//! Tests graphs and arenas.

use dmd::assert_fully_reported;
use petgraph::graph::{Graph, UnGraph};
use petgraph::graphmap::DiGraphMap;
use petgraph::stable_graph::StableGraph;

use super::{Aligned, text, texts};

#[test]
fn graphs() {
    assert_fully_reported!(Graph::<String, String>::new());
    assert_fully_reported!(Graph::<Aligned, u8>::with_capacity(10, 20));
    let mut graph = UnGraph::<String, Vec<u8>>::new_undirected();
    let nodes: Vec<_> = texts(50).map(|text| graph.add_node(text)).collect();
    for pair in nodes.windows(2) {
        graph.add_edge(pair[0], pair[1], vec![1; 9]);
    }
    graph.remove_node(nodes[7]);
    assert_fully_reported!(graph);
}

#[test]
fn stable_graphs() {
    let mut graph = StableGraph::<String, String>::new();
    let nodes: Vec<_> = texts(50).map(|text| graph.add_node(text)).collect();
    for pair in nodes.windows(2) {
        graph.add_edge(pair[0], pair[1], text(9));
    }
    nodes.iter().step_by(3).for_each(|node| drop(graph.remove_node(*node)));
    assert_fully_reported!(graph);
}

#[test]
fn graphs_of_plain_nodes() {
    assert_fully_reported!(DiGraphMap::<u32, String>::new());
    let mut graph = DiGraphMap::<u64, String>::with_capacity(5, 5);
    for node in 0..50 {
        graph.add_edge(node, node * 7 % 50, text(9));
    }
    graph.remove_node(7);
    (0..50).for_each(|node| _ = graph.remove_edge(1, node));
    assert_fully_reported!(graph);
}

#[test]
fn arenas() {
    assert_fully_reported!(bumpalo::Bump::new());
    assert_fully_reported!(bumpalo::Bump::with_capacity(5000));
    let mut arena = bumpalo::Bump::new();
    for length in [1, 100, 10_000, 5, 1 << 20] {
        arena.alloc_slice_fill_copy(length, 1_u8);
    }
    arena.alloc(Aligned(1));
    arena.reset();
    arena.alloc(Aligned(1));
    assert_fully_reported!(arena);
}

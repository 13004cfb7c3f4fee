//! Random graphs: each result compared with a brute-force oracle.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::retention::NONE;
use crate::retention::graph::bytes::NodeBytes;
use crate::retention::graph::cycles::loose_cycles;
use crate::retention::graph::dominators::{Dominators, add_dominated, nearest_dominators};
use crate::retention::graph::paths::ShortestPaths;
use crate::retention::graph::sources::{Nearest, Sources};
use crate::retention::graph::{Builder, Graph};

/// Generates up to ten nodes, of which the last is the root, and edges between them.
pub(crate) fn edges() -> impl Strategy<Value = (usize, BTreeSet<(u32, u32)>)> {
    (1_usize..10).prop_flat_map(|nodes| {
        let node = 0..u32::try_from(nodes).unwrap();
        let edge = (node.clone(), node).prop_filter("to itself", |(from, to)| from != to);
        let count = if nodes == 1 { 0..1 } else { 0..3 * nodes };
        let edges = if nodes == 1 {
            Just(BTreeSet::new()).boxed()
        } else {
            prop::collection::btree_set(edge, count).boxed()
        };
        (Just(nodes), edges)
    })
}

fn graph(nodes: usize, edges: &BTreeSet<(u32, u32)>) -> Graph {
    let mut builder = Builder::default();
    edges.iter().for_each(|&(from, to)| builder.add(from, to));
    builder.finish(nodes)
}

fn sources(nodes: usize, edges: &BTreeSet<(u32, u32)>) -> Sources {
    let mut sources = Sources::new(nodes);
    // Each twice, and not one after the other.
    edges.iter().chain(edges).for_each(|&(from, to)| sources.add(from, to));
    sources
}

/// Generates up to forty nodes, most of which have one source, and edges between them.
fn sparse_edges() -> impl Strategy<Value = (usize, BTreeSet<(u32, u32)>)> {
    (2_u32..40).prop_flat_map(|nodes| {
        let several = prop::collection::vec((0..nodes, 0..nodes), 0..12);
        let one = prop::collection::vec(0..nodes, nodes as usize);
        (several, one).prop_map(move |(several, one)| {
            let edges = one.into_iter().zip(0..nodes).chain(several);
            (nodes as usize, edges.filter(|(from, to)| from != to).collect())
        })
    })
}

/// Returns the nodes that can be reached from `start` without passing `without`.
fn reached(edges: &BTreeSet<(u32, u32)>, start: u32, without: Option<u32>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut pending = vec![start];
    while let Some(node) = pending.pop() {
        if Some(node) != without && found.insert(node) {
            pending.extend(edges.iter().filter(|edge| edge.0 == node).map(|edge| edge.1));
        }
    }
    found
}

/// Returns every path from one node to another that passes no node twice.
fn all_paths(edges: &BTreeSet<(u32, u32)>, from: u32, to: u32) -> Vec<Vec<u32>> {
    let (mut paths, mut pending) = (Vec::new(), vec![vec![from]]);
    while let Some(path) = pending.pop() {
        let last = path[path.len() - 1];
        if last == to {
            paths.push(path);
            continue;
        }
        for edge in edges.iter().filter(|edge| edge.0 == last && !path.contains(&edge.1)) {
            pending.push([&path[..], &[edge.1]].concat());
        }
    }
    paths
}

proptest! {
    #[test]
    fn a_node_is_dominated_by_what_it_cannot_be_reached_without((nodes, edges) in edges()) {
        let root = u32::try_from(nodes - 1).unwrap();
        let nearest = nearest_dominators(graph(nodes, &edges), root);
        let sizes: Vec<u64> = (0..nodes as u64).map(|node| 1 << node).collect();
        let mut retained = NodeBytes::new(nodes, sizes.iter().copied());
        add_dominated(&nearest, &mut retained);
        let dominators = Dominators::new(nearest);
        let all = reached(&edges, root, None);
        let of = |node: u32| -> BTreeSet<u32> {
            all.iter().copied().filter(|&other| !reached(&edges, root, Some(other)).contains(&node)).collect()
        };
        for node in 0..root {
            let strict: BTreeSet<u32> = of(node).into_iter().filter(|&other| other != node).collect();
            // Of those that dominate a node, the nearest is dominated by all others.
            let nearest = strict.iter().copied().find(|&other| of(other).is_superset(&strict));
            let expected = nearest.filter(|_| all.contains(&node));
            prop_assert_eq!(dominators.parent(node), expected, "of {}", node);
            let gone = &all - &reached(&edges, root, Some(node));
            if all.contains(&node) {
                let sum: u64 = gone.iter().map(|&node| sizes[node as usize]).sum();
                prop_assert_eq!(retained.get(node), sum, "with {}", node);
            }
        }
        let children: BTreeSet<(u32, u32)> = (0..=root)
            .flat_map(|node| dominators.children(node).map(move |child| (node, child)))
            .collect();
        let parents: BTreeSet<(u32, u32)> =
            (0..=root).filter_map(|node| Some((dominators.parent(node)?, node))).collect();
        prop_assert_eq!(children, parents);
    }

    #[test]
    fn dominators_by_sources_are_those_of_the_graph((nodes, edges) in sparse_edges()) {
        let mut edges = edges;
        let root = u32::try_from(nodes).unwrap();
        let mut sources = sources(nodes + 1, &edges);
        let heads = sources.heads().filter(|&head| head != root);
        let first = sources.loose_cycles().into_iter().map(|cycle| cycle[0]);
        edges.extend(heads.chain(first).map(|node| (root, node)));
        edges.range((root, 0)..).for_each(|&(from, to)| sources.add(from, to));
        let several: Vec<u32> = (0..=root)
            .filter(|node| edges.iter().filter(|edge| edge.1 == *node).count() > 1).collect();
        let expected = nearest_dominators(graph(nodes + 1, &edges), root);
        prop_assert!(expected.iter().filter(|&&parent| parent == NONE).count() == 1, "all are reached");
        let found = sources.into_dominators(root);
        let Nearest { of, several: found } = found;
        prop_assert_eq!(of, expected);
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), several);
    }

    #[test]
    fn the_edges_are_there_both_ways((nodes, edges) in edges()) {
        let graph = graph(nodes, &edges);
        let numbers = 0..u32::try_from(nodes).unwrap();
        let there: BTreeSet<_> = numbers.clone()
            .flat_map(|node| graph.targets(node).iter().map(move |&to| (node, to))).collect();
        let back: BTreeSet<_> = numbers
            .flat_map(|node| graph.sources(node).iter().map(move |&from| (from, node))).collect();
        prop_assert_eq!(&there, &edges);
        prop_assert_eq!(&back, &edges);
    }

    #[test]
    fn the_cycles_that_nothing_points_at_are_all_found((nodes, edges) in edges()) {
        let graph = graph(nodes, &edges);
        let numbers = 0..u32::try_from(nodes).unwrap();
        // What has no source is a root, as in a dump.
        let mut marked = vec![false; nodes];
        for node in numbers.clone().filter(|node| !edges.iter().any(|edge| edge.1 == *node)) {
            graph.reach(node, &mut marked);
        }
        let left = |node: &u32| !marked[*node as usize];
        let both = |a: u32, b: u32| reached(&edges, a, None).contains(&b) && reached(&edges, b, None).contains(&a);
        let groups: BTreeSet<Vec<u32>> = numbers.clone().filter(left)
            .map(|node| numbers.clone().filter(|&other| both(node, other)).collect()).collect();
        let is_outside = |group: &Vec<u32>| {
            !edges.iter().any(|(from, to)| group.contains(to) && !group.contains(from))
        };
        let expected: Vec<Vec<u32>> = groups.into_iter().filter(is_outside).collect();
        prop_assert_eq!(&loose_cycles(&graph, &marked), &expected);
        prop_assert_eq!(sources(nodes, &edges).loose_cycles(), expected);
    }

    #[test]
    fn paths_come_shortest_first_and_all_of_them((nodes, edges) in edges()) {
        let root = u32::try_from(nodes - 1).unwrap();
        let graph = graph(nodes, &edges);
        let shortest = ShortestPaths::new(&graph, root);
        for node in 0..nodes {
            let node = u32::try_from(node).unwrap();
            let mut expected = all_paths(&edges, root, node);
            expected.sort_by_key(Vec::len);
            prop_assert_eq!(shortest.path(node).len(), expected.first().map_or(0, Vec::len));
            let mut found = Vec::new();
            if !expected.is_empty() {
                shortest.paths(&graph, node, usize::MAX, |path| { found.push(path); false });
            }
            prop_assert!(found.is_sorted_by_key(Vec::len), "{:?}", found);
            let both = [found, expected].map(|paths| paths.into_iter().collect::<BTreeSet<_>>());
            prop_assert_eq!(&both[0], &both[1]);
        }
    }
}

#[test]
fn a_chain_of_a_million_takes_no_stack() {
    const LENGTH: u32 = 1_000_000;
    let mut builder = Builder::default();
    (0..LENGTH - 1).for_each(|node| builder.add(node, node + 1));
    // And back from each to the first, which makes paths to compress.
    builder.add(LENGTH - 1, 0);
    let graph = builder.finish(LENGTH as usize);
    let shortest = ShortestPaths::new(&graph, 0);
    assert_eq!(shortest.path(999_999).len(), LENGTH as usize);
    let nearest = nearest_dominators(graph, 0);
    let mut retained = NodeBytes::new(LENGTH as usize, (0..LENGTH).map(|_| 1));
    add_dominated(&nearest, &mut retained);
    let dominators = Dominators::new(nearest);
    assert_eq!((retained.get(0), retained.get(999_999)), (LENGTH.into(), 1));
    assert_eq!(dominators.parent(999_999), Some(999_998));
}

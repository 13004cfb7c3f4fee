//! Random graphs: each result compared with a brute-force oracle.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::retention::NONE;
use crate::retention::graph::bytes::NodeBytes;
use crate::retention::graph::cycles::loose_cycles;
use crate::retention::graph::dominators::{Dominators, Visit, add_dominated, nearest_dominators};
use crate::retention::graph::edge_list::{Edge, EdgeList};
use crate::retention::graph::edges::{Edges, SharedEdges};
use crate::retention::graph::nodes::NodeSet;
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

/// Adds a root from which all nodes can be reached: it points at those without a source, and at one
/// of each loose cycle. Returns the sources of all nodes and the root.
fn with_root(nodes: usize, edges: &mut BTreeSet<(u32, u32)>) -> (Sources, u32) {
    let root = u32::try_from(nodes).unwrap();
    let mut sources = sources(nodes + 1, edges);
    let heads = sources.heads().filter(|&head| head != root);
    let first = sources.loose_cycles().into_iter().map(|cycle| cycle[0]);
    edges.extend(heads.chain(first).map(|node| (root, node)));
    edges.range((root, 0)..).for_each(|&(from, to)| sources.add(from, to));
    (sources, root)
}

/// Returns the tree of dominators of a graph, and its edges to nodes with several sources.
fn by_dominators(
    sources: Sources,
    edges: &BTreeSet<(u32, u32)>,
    root: u32,
) -> (Dominators, SharedEdges) {
    let nodes = sources.len();
    let Nearest { of, several } = sources.into_dominators(root);
    let mut list = EdgeList::new();
    for &(from, to) in edges.iter().chain(edges).filter(|(_, to)| several.contains(*to)) {
        list.add(Edge { to, from });
    }
    (Dominators::new(of), SharedEdges::new(nodes, list))
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
        let (sources, root) = with_root(nodes, &mut edges);
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
    fn the_edges_of_a_tree_and_to_shared_nodes_are_all((nodes, edges) in sparse_edges()) {
        let mut edges = edges;
        let (sources, root) = with_root(nodes, &mut edges);
        let (dominators, shared) = by_dominators(sources, &edges, root);
        let graph = Edges::new(&dominators, &shared);
        for node in 0..=root {
            let of = |is: fn(&(u32, u32), u32) -> bool| edges.iter().filter(move |edge| is(edge, node));
            let to: Vec<u32> = of(|edge, node| edge.0 == node).map(|edge| edge.1).collect();
            prop_assert_eq!(graph.targets(node).collect::<Vec<_>>(), &to[..], "of {}", node);
            prop_assert_eq!(graph.has_targets(node), !to.is_empty());
            let from: Vec<u32> = of(|edge, node| edge.1 == node).map(|edge| edge.0).collect();
            let several = graph.several_sources(node).to_vec();
            let found = graph.only_source(node).map_or(several, |only| vec![only]);
            prop_assert_eq!(found, from, "to {}", node);
            let mut marked = NodeSet::new(graph.len());
            marked.insert(node);
            graph.reach(root, &mut marked);
            let mut left = reached(&edges, root, Some(node));
            left.insert(node);
            prop_assert!(marked.iter().eq(left), "without {}", node);
        }
    }

    #[test]
    fn a_walk_enters_and_leaves_each_node_of_the_tree((nodes, edges) in sparse_edges()) {
        let mut edges = edges;
        let (sources, root) = with_root(nodes, &mut edges);
        let (dominators, _) = by_dominators(sources, &edges, root);
        let (mut above, mut entered) = (Vec::new(), BTreeSet::new());
        for visit in dominators.walk(root) {
            match visit {
                Visit::Enter(node) => {
                    prop_assert_eq!(dominators.parent(node), above.last().copied());
                    prop_assert!(entered.insert(node));
                    above.push(node);
                }
                Visit::Leave(node) => prop_assert_eq!(above.pop(), Some(node)),
            }
        }
        prop_assert_eq!((entered.len(), above.len()), (nodes + 1, 0));
    }

    #[test]
    fn paths_come_shortest_first_and_all_of_them((nodes, edges) in edges()) {
        let mut edges = edges;
        let (sources, root) = with_root(nodes, &mut edges);
        let (dominators, shared) = by_dominators(sources, &edges, root);
        let mut visited = BTreeSet::new();
        let graph = Edges::new(&dominators, &shared);
        let shortest = ShortestPaths::new(graph, root, 0, |steps, before, node| {
            assert!(edges.contains(&(before, node)) && visited.insert((steps + 1, node)));
            steps + 1
        });
        prop_assert_eq!(visited.len(), nodes);
        for (steps, node) in visited {
            let mut expected = all_paths(&edges, root, node);
            expected.sort_by_key(Vec::len);
            prop_assert_eq!(expected[0].len(), steps + 1);
            prop_assert!(expected.contains(&shortest.path(node)));
            prop_assert_eq!(shortest.path(node).len(), steps + 1);
            let mut found = Vec::new();
            shortest.paths(node, usize::MAX, |path| { found.push(path); false });
            prop_assert!(found.is_sorted_by_key(Vec::len), "{:?}", found);
            let both = [found, expected].map(|paths| paths.into_iter().collect::<BTreeSet<_>>());
            prop_assert_eq!(&both[0], &both[1]);
        }
    }
}

#[test]
fn a_chain_of_a_million_takes_no_stack() {
    const LENGTH: u32 = 1_000_000;
    // And back from the last to the first but one, which makes paths to compress.
    let mut edges: BTreeSet<(u32, u32)> = (0..LENGTH - 1).map(|node| (node, node + 1)).collect();
    edges.insert((LENGTH - 1, 1));
    let nearest = nearest_dominators(graph(LENGTH as usize, &edges), 0);
    let mut retained = NodeBytes::new(LENGTH as usize, (0..LENGTH).map(|_| 1));
    add_dominated(&nearest, &mut retained);
    assert_eq!((retained.get(0), retained.get(999_999)), (LENGTH.into(), 1));
    let (dominators, shared) = by_dominators(sources(LENGTH as usize, &edges), &edges, 0);
    assert_eq!(dominators.parent(999_999), Some(999_998));
    let shortest = ShortestPaths::new(Edges::new(&dominators, &shared), 0, (), |(), _, _| ());
    assert_eq!(shortest.path(999_999).len(), LENGTH as usize);
}

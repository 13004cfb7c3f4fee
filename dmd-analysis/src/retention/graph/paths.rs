//! Shortest paths through a graph from its root: one to each node, and several to one node.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Graph;
use super::NONE;

/// A shortest path from the root to every node.
#[derive(Debug)]
pub(crate) struct ShortestPaths {
    root: u32,
    /// By node: the previous node on its path, or [`NONE`].
    before: Vec<u32>,
    /// By node: the number of steps from the root, or [`NONE`].
    steps: Vec<u32>,
    /// The reachable nodes, nearest first.
    pub(crate) order: Vec<u32>,
}

impl ShortestPaths {
    /// Finds the shortest paths by a breadth-first search.
    pub(crate) fn new(graph: &Graph, root: u32) -> Self {
        let (mut before, mut steps) = (vec![NONE; graph.len()], vec![NONE; graph.len()]);
        let mut order = vec![root];
        steps[root as usize] = 0;
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            let step = steps[node as usize].saturating_add(1);
            for &target in graph.targets(node) {
                if steps[target as usize] == NONE {
                    (before[target as usize], steps[target as usize]) = (node, step);
                    order.push(target);
                }
            }
        }
        Self { root, before, steps, order }
    }

    /// Returns the previous node on the path to a node.
    pub(crate) fn before(&self, node: u32) -> Option<u32> {
        Some(self.before[node as usize]).filter(|&before| before != NONE)
    }

    /// Returns the path to a node, root and node included; empty if the node is unreachable.
    pub(crate) fn path(&self, node: u32) -> Vec<u32> {
        if self.steps[node as usize] == NONE {
            return Vec::new();
        }
        let mut path = vec![node];
        let mut at = node;
        while let Some(before) = self.before(at) {
            path.push(before);
            at = before;
        }
        path.reverse();
        path
    }

    /// Visits the paths to a node, shortest first, until `enough` returns true. No path passes a
    /// node twice.
    ///
    /// This is an A* search from the end of the paths. The distance to the root is exact, so paths
    /// are complete in the order of their lengths. `work` limits the number of visited nodes; the
    /// search ends there even if there are more paths.
    pub(crate) fn paths(
        &self,
        graph: &Graph,
        node: u32,
        mut work: usize,
        mut enough: impl FnMut(Vec<u32>) -> bool,
    ) {
        let mut parts = vec![Part { node, after: NONE, length: 0 }];
        let mut queue = BinaryHeap::from([Reverse((self.steps[node as usize], 0_u32))]);
        while let Some(Reverse((_, number))) = queue.pop() {
            let path = path_from(&parts, number);
            work = work.saturating_sub(path.len());
            let Part { node, length, .. } = parts[number as usize];
            if node == self.root {
                if enough(path) {
                    return;
                }
                continue;
            }
            for &source in graph.sources(node) {
                work = work.saturating_sub(1);
                let left = self.steps[source as usize];
                if left == NONE || path.contains(&source) {
                    continue;
                }
                let next = u32::try_from(parts.len()).unwrap_or(NONE);
                parts.push(Part { node: source, after: number, length: length + 1 });
                queue.push(Reverse((left.saturating_add(length + 1), next)));
            }
            if work == 0 {
                return;
            }
        }
    }
}

/// A path from a node to the end: its first node, and the number of the rest.
#[derive(Debug, Clone, Copy)]
struct Part {
    node: u32,
    /// The number of the rest, or [`NONE`].
    after: u32,
    length: u32,
}

fn path_from(parts: &[Part], mut number: u32) -> Vec<u32> {
    let mut path = Vec::new();
    while let Some(part) = parts.get(number as usize) {
        path.push(part.node);
        number = part.after;
    }
    path
}

//! Shortest ways through a graph from its root: one to each node, and several to one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::NONE;
use super::graph::Graph;

/// A shortest way from the root to every node.
#[derive(Debug)]
pub(crate) struct Nearest {
    root: u32,
    /// By node: the one before it, or [`NONE`].
    before: Vec<u32>,
    /// By node: the steps from the root, or [`NONE`].
    steps: Vec<u32>,
    /// The nodes that can be reached, the nearest first.
    pub(crate) order: Vec<u32>,
}

impl Nearest {
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

    /// The node before this one on its way.
    pub(crate) fn before(&self, node: u32) -> Option<u32> {
        Some(self.before[node as usize]).filter(|&before| before != NONE)
    }

    /// The way to a node, root and node included; empty if there is none.
    pub(crate) fn way(&self, node: u32) -> Vec<u32> {
        if self.steps[node as usize] == NONE {
            return Vec::new();
        }
        let mut way = vec![node];
        let mut at = node;
        while let Some(before) = self.before(at) {
            way.push(before);
            at = before;
        }
        way.reverse();
        way
    }

    /// The shortest ways to a node, the shortest first; none passes a node twice. `enough` sees each, and ends the search.
    ///
    /// Ways grow from their end. None can be shorter than what it has and the steps that are left from there, so the first that
    /// comes to the root is the shortest there is. `work` bounds how many nodes are looked at: after that, there may be more.
    pub(crate) fn ways(
        &self,
        graph: &Graph,
        node: u32,
        mut work: usize,
        mut enough: impl FnMut(Vec<u32>) -> bool,
    ) {
        let mut parts = vec![Part { node, after: NONE, length: 0 }];
        let mut queue = BinaryHeap::from([Reverse((self.steps[node as usize], 0_u32))]);
        while let Some(Reverse((_, number))) = queue.pop() {
            let way = way_from(&parts, number);
            work = work.saturating_sub(way.len());
            let Part { node, length, .. } = parts[number as usize];
            if node == self.root {
                if enough(way) {
                    return;
                }
                continue;
            }
            for &source in graph.sources(node) {
                work = work.saturating_sub(1);
                let left = self.steps[source as usize];
                if left == NONE || way.contains(&source) {
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

/// A way from a node to the end, as its first node and the rest.
#[derive(Debug, Clone, Copy)]
struct Part {
    node: u32,
    /// The number of the rest.
    after: u32,
    length: u32,
}

fn way_from(parts: &[Part], mut number: u32) -> Vec<u32> {
    let mut way = Vec::new();
    while let Some(part) = parts.get(number as usize) {
        way.push(part.node);
        number = part.after;
    }
    way
}

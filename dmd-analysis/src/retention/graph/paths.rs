//! Shortest paths through a graph from its root: one to each node, and several to one node.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::NONE;
use super::edges::Edges;

/// A shortest path from the root to every node.
///
/// The path to a node with one source passes that source, and is one step longer than the path to
/// it. So only nodes with several sources, and these sources, have numbers here.
#[derive(Debug)]
pub(crate) struct ShortestPaths<'g> {
    edges: Edges<'g>,
    root: u32,
    /// By number of a node with several sources: the previous node on its path.
    before: Vec<u32>,
    /// By number of a node that points at those: the number of steps from the root.
    steps: Vec<u32>,
}

impl<'g> ShortestPaths<'g> {
    /// Finds the shortest paths by a breadth-first search.
    ///
    /// Calls `visit(result, before, node)` for each node but the root, nearest first: `before` is
    /// the previous node on its path, and `result` what `visit` returned for that, or `of_root`.
    pub(crate) fn new<T: Copy>(
        edges: Edges<'g>,
        root: u32,
        of_root: T,
        mut visit: impl FnMut(T, u32, u32) -> T,
    ) -> Self {
        let mut before = vec![NONE; edges.shared_targets()];
        let mut steps = vec![NONE; edges.sources_of_shared()];
        let (mut nearest, mut next) = (vec![(root, of_root)], Vec::new());
        let mut length = 0;
        while !nearest.is_empty() {
            for (node, result) in nearest.drain(..) {
                if let Some(number) = edges.source_of_shared(node) {
                    steps[number as usize] = length;
                }
                for target in edges.targets(node) {
                    if let Some(number) = edges.shared_target(target) {
                        if before[number as usize] != NONE {
                            continue;
                        }
                        before[number as usize] = node;
                    }
                    let result = visit(result, node, target);
                    if edges.has_targets(target) {
                        next.push((target, result));
                    }
                }
            }
            std::mem::swap(&mut nearest, &mut next);
            length += 1;
        }
        Self { edges, root, before, steps }
    }

    /// Returns the path to a node, root and node included.
    pub(crate) fn path(&self, node: u32) -> Vec<u32> {
        let mut path: Vec<u32> =
            std::iter::successors(Some(node), |&node| self.before(node)).collect();
        path.reverse();
        path
    }

    /// Returns the previous node on the path to a node.
    fn before(&self, node: u32) -> Option<u32> {
        let Some(number) = self.edges.shared_target(node) else {
            return self.edges.only_source(node);
        };
        Some(self.before[number as usize]).filter(|&before| before != NONE)
    }

    /// Visits the paths to a node, shortest first, until `enough` returns true. No path passes a
    /// node twice.
    ///
    /// This is an A* search from the end of the paths. The distance to the root is exact, so paths
    /// are complete in the order of their lengths. `work` limits the number of visited nodes; the
    /// search ends there even if there are more paths.
    pub(crate) fn paths(
        &self,
        node: u32,
        mut work: usize,
        mut enough: impl FnMut(Vec<u32>) -> bool,
    ) {
        let steps = self.path(node).len() - 1;
        let steps = u32::try_from(steps).unwrap_or(NONE);
        let mut parts = vec![Part { node, after: NONE, steps, length: 0 }];
        let mut queue = BinaryHeap::from([Reverse((steps, 0_u32))]);
        while let Some(Reverse((_, number))) = queue.pop() {
            let path = path_from(&parts, number);
            work = work.saturating_sub(path.len());
            let part = parts[number as usize];
            if part.node == self.root {
                if enough(path) {
                    return;
                }
                continue;
            }
            self.each_source(part, |source, steps| {
                work = work.saturating_sub(1);
                if path.contains(&source) {
                    return;
                }
                let length = part.length + 1;
                let next = u32::try_from(parts.len()).unwrap_or(NONE);
                parts.push(Part { node: source, after: number, steps, length });
                queue.push(Reverse((steps.saturating_add(length), next)));
            });
            if work == 0 {
                return;
            }
        }
    }

    /// Calls `found` with the sources of the first node of a part, and with the number of steps to
    /// each.
    fn each_source(&self, part: Part, mut found: impl FnMut(u32, u32)) {
        if let Some(source) = self.edges.only_source(part.node) {
            return found(source, part.steps.saturating_sub(1));
        }
        for &source in self.edges.several_sources(part.node) {
            let number = self.edges.source_of_shared(source);
            found(source, number.map_or(NONE, |number| self.steps[number as usize]));
        }
    }
}

/// A path from a node to the end: its first node, and the number of the rest.
#[derive(Debug, Clone, Copy)]
struct Part {
    node: u32,
    /// The number of the rest, or [`NONE`].
    after: u32,
    /// The steps from the root to the node.
    steps: u32,
    /// The steps from the node to the end.
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

//! A directed graph in arrays, in compressed sparse rows: the targets and the sources of each node.
//!
//! The graph of a large scan takes about as much memory as the scan's blocks, so no array is kept
//! that can be computed again.

pub(crate) mod bytes;
pub(crate) mod narrow;
pub(crate) mod nodes;
pub(crate) mod node_list;
pub(crate) mod edge_list;
pub(crate) mod sources;
pub(crate) mod dominators;
pub(crate) mod edges;
pub(crate) mod paths;
pub(crate) mod cycles;

use std::sync::OnceLock;

use super::NONE;

/// A graph under construction: nodes receive their edges one after another.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    /// By node: where its targets begin. Nodes beyond the end have none yet.
    first: Vec<u32>,
    targets: Vec<u32>,
    /// By target: the last source with more than [`FEW`] targets that has an edge to it, so that no
    /// edge is added twice.
    seen: Vec<u32>,
}

/// The number of a node's targets that are searched one by one for another that is the same.
const FEW: usize = 16;

/// A graph that can be walked in both directions.
#[derive(Debug)]
pub(crate) struct Graph {
    targets: Neighbours,
    /// Computed when a source is first needed.
    sources: OnceLock<Neighbours>,
}

/// The nodes at the other ends of each node's edges, in one direction.
#[derive(Debug)]
struct Neighbours {
    first: Vec<u32>,
    of: Vec<u32>,
}

impl Neighbours {
    /// Returns the number of nodes.
    fn len(&self) -> usize {
        self.first.len() - 1
    }

    fn of(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.of[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Sorts edges by the nodes that they come from, by counting. Those of one node come in the
    /// opposite order.
    fn of_edges(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        // Counts first, then the ends of the rows; filling the rows from behind turns these into
        // their starts.
        let mut first = vec![0_u32; nodes + 1];
        edges.clone().for_each(|(from, _)| first[from as usize] += 1);
        let mut sum = 0;
        for count in &mut first {
            sum += *count;
            *count = sum;
        }
        let mut of = vec![0; sum as usize];
        for (from, to) in edges {
            let place = &mut first[from as usize];
            *place -= 1;
            of[*place as usize] = to;
        }
        Self { first, of }
    }

    /// Returns the edges in the other direction, for nodes with other names: `name` returns the new
    /// one, below `nodes`, or [`NONE`] for a node whose edges are left out.
    fn reversed(&self, nodes: usize, name: impl Fn(u32) -> u32 + Copy) -> Self {
        let rows = 0..u32::try_from(self.len()).unwrap_or(NONE);
        let rows = rows.rev().filter(|&node| name(node) != NONE);
        let edges =
            rows.flat_map(|node| self.of(node).iter().map(move |&to| (name(to), name(node))));
        Self::of_edges(nodes, edges)
    }
}

impl Builder {
    /// Adds an edge, unless it already exists. Edges must come in ascending order of their sources.
    pub(crate) fn add(&mut self, from: u32, to: u32) {
        self.fill(from as usize + 1);
        let row = self.first[from as usize] as usize;
        let targets = &self.targets[row..];
        let is_new = match targets.len() {
            0..FEW => !targets.contains(&to),
            FEW => {
                for at in row..self.targets.len() {
                    self.see(from, self.targets[at]);
                }
                self.see(from, to)
            }
            _ => self.see(from, to),
        };
        if is_new {
            self.targets.push(to);
        }
    }

    /// Remembers an edge. Returns whether it is new.
    fn see(&mut self, from: u32, to: u32) -> bool {
        let at = to as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, NONE);
        }
        std::mem::replace(&mut self.seen[at], from) != from
    }

    fn fill(&mut self, nodes: usize) {
        let end = self.end();
        if self.first.len() < nodes {
            self.first.resize(nodes, end);
        }
    }

    fn end(&self) -> u32 {
        // Every edge is a word of a dump, which takes several bytes of a text of limited length.
        u32::try_from(self.targets.len()).unwrap_or(u32::MAX)
    }

    /// Returns the finished graph with this number of nodes. The targets of each are in the order
    /// in which they were added.
    pub(crate) fn finish(mut self, nodes: usize) -> Graph {
        self.fill(nodes + 1);
        drop(self.seen);
        self.targets.shrink_to_fit();
        let targets = Neighbours { first: self.first, of: self.targets };
        Graph { targets, sources: OnceLock::new() }
    }
}

impl Graph {
    /// Makes a graph of edges in any order; one that comes twice counts once.
    pub(crate) fn of_edges(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let Neighbours { mut first, mut of } = Neighbours::of_edges(nodes, edges);
        let mut kept = 0;
        let mut start = 0;
        for node in 0..nodes {
            let end = first[node + 1] as usize;
            of[start..end].sort_unstable();
            first[node] = u32::try_from(kept).unwrap_or(u32::MAX);
            let row = kept;
            for at in start..end {
                if kept == row || of[kept - 1] != of[at] {
                    of[kept] = of[at];
                    kept += 1;
                }
            }
            start = end;
        }
        first[nodes] = u32::try_from(kept).unwrap_or(u32::MAX);
        of.truncate(kept);
        let targets = Neighbours { first, of };
        Self { targets, sources: OnceLock::new() }
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns the nodes that a node points at, each once.
    pub(crate) fn targets(&self, node: u32) -> &[u32] {
        self.targets.of(node)
    }

    /// Returns the nodes that point at a node, each once.
    pub(crate) fn sources(&self, node: u32) -> &[u32] {
        let reversed = || self.targets.reversed(self.len(), |node| node);
        self.sources.get_or_init(reversed).of(node)
    }

    /// Marks the nodes that can be reached from `start` through unmarked nodes, `start` included.
    pub(crate) fn reach(&self, start: u32, marked: &mut [bool]) {
        spread(start, marked, |node| self.targets(node));
    }

    /// Marks the nodes that reach `start` through unmarked nodes, `start` included, and returns
    /// them.
    pub(crate) fn reach_back(&self, start: u32, marked: &mut [bool]) -> Vec<u32> {
        spread(start, marked, |node| self.sources(node))
    }
}

fn spread<'g>(start: u32, marked: &mut [bool], neighbours: impl Fn(u32) -> &'g [u32]) -> Vec<u32> {
    if std::mem::replace(&mut marked[start as usize], true) {
        return Vec::new();
    }
    let mut found = vec![start];
    let mut next = 0;
    while let Some(&node) = found.get(next) {
        next += 1;
        for &other in neighbours(node) {
            if !std::mem::replace(&mut marked[other as usize], true) {
                found.push(other);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_that_comes_twice_counts_once_however_many_a_node_has() {
        let nodes = 3 * u32::try_from(FEW).expect("it is small");
        let mut builder = Builder::default();
        for from in 0..nodes {
            for to in (0..from).chain(0..from).chain([from / 2]) {
                builder.add(from, to);
            }
        }
        let graph = builder.finish(nodes as usize);
        for from in 0..nodes {
            let expected: Vec<u32> = (0..from.max(u32::from(from == 0))).collect();
            assert_eq!(graph.targets(from), expected);
        }
    }
}

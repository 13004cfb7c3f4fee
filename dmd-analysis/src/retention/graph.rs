//! A directed graph in arrays: for each node where its neighbours begin, and the neighbours, there and back.

use super::NONE;

/// A graph that grows: nodes get their edges one after another.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    /// By node: where its targets begin. A node that is not in here yet has none.
    first: Vec<u32>,
    targets: Vec<u32>,
    /// By target: the last node that it was added to, so that an edge is there once.
    seen: Vec<u32>,
}

/// A graph that can be walked both ways.
#[derive(Debug)]
pub(crate) struct Graph {
    there: Neighbours,
    back: Neighbours,
}

#[derive(Debug)]
struct Neighbours {
    first: Vec<u32>,
    of: Vec<u32>,
}

impl Neighbours {
    fn of(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.of[self.first[at] as usize..self.first[at + 1] as usize]
    }
}

impl Builder {
    /// Adds an edge. Sources come in ascending order; an edge that is there is not added again.
    pub(crate) fn add(&mut self, from: u32, to: u32) {
        self.fill(from as usize + 1);
        let at = to as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, NONE);
        }
        if self.seen[at] != from {
            self.seen[at] = from;
            self.targets.push(to);
        }
    }

    fn fill(&mut self, nodes: usize) {
        let end = self.end();
        if self.first.len() < nodes {
            self.first.resize(nodes, end);
        }
    }

    fn end(&self) -> u32 {
        // A word of a dump takes several bytes of a text that is limited.
        u32::try_from(self.targets.len()).unwrap_or(u32::MAX)
    }

    /// The graph as it is, of so many nodes.
    pub(crate) fn graph(&self, nodes: usize) -> Graph {
        let mut first = self.first.clone();
        first.resize(nodes + 1, self.end());
        let there = Neighbours { first, of: self.targets.clone() };
        Graph { back: turned(&there), there }
    }

    /// The graph of so many nodes, and no more edges.
    pub(crate) fn finish(mut self, nodes: usize) -> Graph {
        self.fill(nodes + 1);
        let there = Neighbours { first: self.first, of: self.targets };
        drop(self.seen);
        Graph { back: turned(&there), there }
    }
}

/// The same edges by their targets.
fn turned(there: &Neighbours) -> Neighbours {
    let nodes = there.first.len() - 1;
    // First how many there are, then where they end, then, filled from behind, where they begin.
    let mut first = vec![0_u32; nodes + 1];
    for &to in &there.of {
        first[to as usize] += 1;
    }
    let mut end = 0;
    for count in &mut first {
        end += *count;
        *count = end;
    }
    let mut of = vec![0; there.of.len()];
    for node in (0..nodes).rev() {
        let node = u32::try_from(node).unwrap_or(NONE);
        for &to in there.of(node) {
            let place = &mut first[to as usize];
            *place -= 1;
            of[*place as usize] = node;
        }
    }
    Neighbours { first, of }
}

impl Graph {
    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.there.first.len() - 1
    }

    /// The nodes that this one points at, each once.
    pub(crate) fn targets(&self, node: u32) -> &[u32] {
        self.there.of(node)
    }

    /// The nodes that point at this one, each once.
    pub(crate) fn sources(&self, node: u32) -> &[u32] {
        self.back.of(node)
    }

    /// Marks what can be reached from `start`, itself included, through nodes that are not marked.
    pub(crate) fn reach(&self, start: u32, marked: &mut [bool]) {
        spread(start, marked, |node| self.targets(node));
    }

    /// Marks what `start` can be reached from, itself included, through nodes that are not marked; answers with those.
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

//! The dominators of a graph, by the algorithm of Lengauer and Tarjan, without recursion.
//!
//! A node dominates another if every path from the root to the other passes it. The nearest such
//! node is the parent in the tree of dominators. The retained size of a node is the sum of its
//! subtree. The simple form of the algorithm takes O(m log n) for every graph: "A fast algorithm
//! for finding dominators in a flowgraph", TOPLAS 1979.

use super::{Graph, NONE, accumulate};

/// The tree of dominators.
#[derive(Debug)]
pub(crate) struct Dominators {
    /// By node: its nearest dominator, or [`NONE`] for the root and for unreachable nodes.
    parents: Vec<u32>,
    /// The reachable nodes, each after its dominators.
    order: Vec<u32>,
    /// By node: where its children begin in `children`.
    first: Vec<u32>,
    children: Vec<u32>,
}

impl Dominators {
    /// Finds the dominators of all nodes that can be reached from `root`.
    pub(crate) fn new(graph: &Graph, root: u32) -> Self {
        let Walk { order, numbers, parents: above } = Walk::new(graph, root);
        let nearest = Search::new(above).run(|number, visit| {
            for &source in graph.sources(order[number as usize]) {
                if numbers[source as usize] != NONE {
                    visit(numbers[source as usize]);
                }
            }
        });
        let mut parents = numbers;
        parents.fill(NONE);
        for (&node, &number) in order.iter().zip(&nearest).skip(1) {
            parents[node as usize] = order[number as usize];
        }
        let Children { first, of: children } = children(&parents, &order);
        Self { parents, order, first, children }
    }

    /// Returns the nearest dominator of a node.
    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        Some(self.parents[node as usize]).filter(|&parent| parent != NONE)
    }

    /// Returns the nodes whose nearest dominator is this node.
    pub(crate) fn children(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.children[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Returns for each node the sum of these sizes over its subtree.
    pub(crate) fn retained(&self, mut sizes: Vec<u64>) -> Vec<u64> {
        for &node in self.order.iter().rev() {
            if let Some(parent) = self.parent(node) {
                let size = sizes[node as usize];
                let sum = &mut sizes[parent as usize];
                *sum = sum.saturating_add(size);
            }
        }
        sizes
    }
}

/// The children of each node, in the order of the walk.
struct Children {
    first: Vec<u32>,
    of: Vec<u32>,
}

fn children(parents: &[u32], order: &[u32]) -> Children {
    let mut first = vec![0_u32; parents.len() + 1];
    for &parent in parents.iter().filter(|&&parent| parent != NONE) {
        first[parent as usize] += 1;
    }
    let mut children = vec![0; accumulate(&mut first) as usize];
    for &node in order.iter().rev() {
        let parent = parents[node as usize];
        if parent != NONE {
            let place = &mut first[parent as usize];
            *place -= 1;
            children[*place as usize] = node;
        }
    }
    Children { first, of: children }
}

/// A depth-first walk through the graph.
struct Walk {
    /// The nodes in the order of the walk: a node's number is its index.
    order: Vec<u32>,
    /// By node.
    numbers: Vec<u32>,
    /// By number: the number of the previous node of the walk.
    parents: Vec<u32>,
}

impl Walk {
    fn new(graph: &Graph, root: u32) -> Self {
        let mut walk =
            Walk { order: Vec::new(), numbers: vec![NONE; graph.len()], parents: Vec::new() };
        // By number: how many of its targets have been visited.
        let mut done: Vec<u32> = Vec::new();
        let mut at = walk.meet(root, NONE);
        done.push(0);
        loop {
            let targets = graph.targets(walk.order[at as usize]);
            let place = &mut done[at as usize];
            if let Some(&target) = targets.get(*place as usize) {
                *place += 1;
                if walk.numbers[target as usize] == NONE {
                    at = walk.meet(target, at);
                    done.push(0);
                }
            } else {
                at = walk.parents[at as usize];
                if at == NONE {
                    return walk;
                }
            }
        }
    }

    fn meet(&mut self, node: u32, from: u32) -> u32 {
        let number = u32::try_from(self.order.len()).unwrap_or(NONE);
        self.numbers[node as usize] = number;
        self.order.push(node);
        self.parents.push(from);
        number
    }
}

/// The state of Lengauer and Tarjan's algorithm, indexed by number.
struct Search {
    /// The parents in the walk.
    parents: Vec<u32>,
    /// The forest of linked nodes.
    forest: Vec<Linked>,
    semi: Vec<u32>,
    /// Linked lists of the nodes with the same `semi`: the first of each list.
    bucket: Vec<u32>,
    /// By node: the next one in its list, and once it is in none, its nearest dominator.
    next_or_nearest: Vec<u32>,
    path: Vec<u32>,
}

/// A node of the forest. Its fields are adjacent because every access is a cache miss on a random
/// graph.
#[derive(Clone, Copy)]
struct Linked {
    /// An ancestor in its tree, or [`NONE`] at the root. Path compression moves it upwards.
    ancestor: u32,
    /// The least `semi` on the path up to, but without, the ancestor; `label` is the node that has
    /// it.
    least: u32,
    label: u32,
}

impl Search {
    fn new(parents: Vec<u32>) -> Self {
        let count = parents.len();
        let numbers = 0..u32::try_from(count).unwrap_or(NONE);
        let alone = |number| Linked { ancestor: NONE, least: number, label: number };
        Search {
            parents,
            forest: numbers.clone().map(alone).collect(),
            semi: numbers.collect(),
            bucket: vec![NONE; count],
            next_or_nearest: vec![0; count],
            path: Vec::new(),
        }
    }

    /// Returns the nearest dominators. `sources` visits the numbers of the nodes that point at a
    /// node.
    fn run(mut self, sources: impl Fn(u32, &mut dyn FnMut(u32))) -> Vec<u32> {
        let count = u32::try_from(self.parents.len()).unwrap_or(NONE);
        for node in (1..count).rev() {
            let mut semi = node;
            sources(node, &mut |source| semi = semi.min(self.least(source).least));
            self.semi[node as usize] = semi;
            let next = std::mem::replace(&mut self.bucket[semi as usize], node);
            self.next_or_nearest[node as usize] = next;
            let parent = self.parents[node as usize];
            self.forest[node as usize] = Linked { ancestor: parent, least: semi, label: node };
            self.empty_bucket(parent);
        }
        // Each list is emptied when the walk comes to a child of its `semi`, so none is left.
        let mut nearest = self.next_or_nearest;
        for node in 1..count as usize {
            if nearest[node] != self.semi[node] {
                nearest[node] = nearest[nearest[node] as usize];
            }
        }
        nearest
    }

    /// Sets the nearest dominator of the nodes in a bucket: `parent`, or the dominator of `label`,
    /// which is found later.
    fn empty_bucket(&mut self, parent: u32) {
        let mut node = std::mem::replace(&mut self.bucket[parent as usize], NONE);
        while node != NONE {
            let Linked { least, label, .. } = self.least(node);
            let is_less = least < self.semi[node as usize];
            let nearest = if is_less { label } else { parent };
            node = std::mem::replace(&mut self.next_or_nearest[node as usize], nearest);
        }
    }

    /// Returns the node of the forest with the least `semi` on the path from `node` up to, but
    /// without, its root.
    fn least(&mut self, node: u32) -> Linked {
        let mut at = node;
        loop {
            let above = self.forest[at as usize].ancestor;
            if above == NONE || self.forest[above as usize].ancestor == NONE {
                break;
            }
            self.path.push(at);
            at = above;
        }
        while let Some(at) = self.path.pop() {
            let above = self.forest[self.forest[at as usize].ancestor as usize];
            let own = &mut self.forest[at as usize];
            own.ancestor = above.ancestor;
            if above.least < own.least {
                (own.least, own.label) = (above.least, above.label);
            }
        }
        self.forest[node as usize]
    }
}

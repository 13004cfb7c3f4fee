//! The dominators of a graph, by the algorithm of Lengauer and Tarjan, without recursion.
//!
//! A node dominates another if every path from the root to the other passes it. The nearest such
//! node is the parent in the tree of dominators. The retained size of a node is the sum of its
//! subtree. The simple form of the algorithm takes O(m log n) for every graph: "A fast algorithm
//! for finding dominators in a flowgraph", TOPLAS 1979.

use super::bytes::NodeBytes;
use super::{Graph, NONE, Neighbours};

/// The nearest dominator of each node, in the order of a walk from the root.
pub(crate) struct NearestDominators {
    /// The reachable nodes in the order of the walk: a node's number is its index. Dominators come
    /// before what they dominate.
    order: Vec<u32>,
    /// By number: the number of the nearest dominator.
    nearest: Vec<u32>,
    /// The number of nodes of the graph.
    nodes: usize,
}

/// The tree of dominators.
#[derive(Debug)]
pub(crate) struct Dominators {
    /// By node: its nearest dominator, or [`NONE`] for the root and for unreachable nodes.
    parents: Vec<u32>,
    children: Neighbours,
}

impl NearestDominators {
    /// Finds the dominators of all nodes that can be reached from `root`.
    ///
    /// The graph loses the edges of other nodes, and the targets of each node are sorted: during
    /// the search its edges are stored by the numbers of the walk, and only there.
    pub(crate) fn new(graph: &mut Graph, root: u32) -> Self {
        let nodes = graph.len();
        let Walk { order, numbers, parents } = Walk::new(graph, root);
        graph.sources.take();
        let targets = std::mem::take(&mut graph.targets);
        let sources = targets.reversed(order.len(), |node| numbers[node as usize]);
        drop((targets, numbers));
        let nearest = Search::new(parents).run(&sources);
        graph.targets = sources.reversed(nodes, |number| order[number as usize]);
        drop(sources);
        graph.targets.sort();
        Self { order, nearest, nodes }
    }

    /// Returns for each node the sum of these sizes over the nodes that it dominates, with its own.
    pub(crate) fn retained(&self, mut sizes: NodeBytes) -> NodeBytes {
        for (&node, &nearest) in self.order.iter().zip(&self.nearest).skip(1).rev() {
            sizes.add(self.order[nearest as usize], sizes.get(node));
        }
        sizes
    }

    /// Makes the tree of them.
    pub(crate) fn into_tree(self) -> Dominators {
        let Self { order, nearest, nodes } = self;
        let mut parents = vec![NONE; nodes];
        for (&node, &number) in order.iter().zip(&nearest).skip(1) {
            parents[node as usize] = order[number as usize];
        }
        drop((order, nearest));
        let numbers = 0..u32::try_from(nodes).unwrap_or(NONE);
        let edges = numbers.rev().map(|node| (parents[node as usize], node));
        let edges = edges.filter(|&(parent, _)| parent != NONE);
        let children = Neighbours::of_edges(nodes, edges);
        Dominators { parents, children }
    }
}

impl Dominators {
    /// Returns the nearest dominator of a node.
    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        Some(self.parents[node as usize]).filter(|&parent| parent != NONE)
    }

    /// Returns the nodes whose nearest dominator is this node, in ascending order.
    pub(crate) fn children(&self, node: u32) -> &[u32] {
        self.children.of(node)
    }
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
        let mut at = walk.meet(root, NONE);
        // Of the nodes from the root to this one: how many of their targets have been visited.
        let mut done = vec![0_u32];
        while let Some(place) = done.last_mut() {
            let targets = graph.targets(walk.order[at as usize]);
            if let Some(&target) = targets.get(*place as usize) {
                *place += 1;
                if walk.numbers[target as usize] == NONE {
                    at = walk.meet(target, at);
                    done.push(0);
                }
            } else {
                at = walk.parents[at as usize];
                done.pop();
            }
        }
        walk
    }

    fn meet(&mut self, node: u32, from: u32) -> u32 {
        let number = u32::try_from(self.order.len()).unwrap_or(NONE);
        self.numbers[node as usize] = number;
        self.order.push(node);
        self.parents.push(from);
        number
    }
}

/// The state of Lengauer and Tarjan's algorithm, indexed by number. It goes through the numbers
/// from the last to the first, and links each node to its parent in the walk.
struct Search {
    /// The forest of linked nodes.
    forest: Vec<Linked>,
    /// By node: its parent in the walk; once it is linked, the next node of its list; and once it
    /// is in no list, its nearest dominator.
    next: Vec<u32>,
    /// A bit for each node: whether `next` is another node, which has the same nearest dominator.
    is_deferred: Vec<u64>,
    path: Vec<u32>,
}

/// A node of the forest. Its fields are adjacent because every access is a cache miss on a random
/// graph.
#[derive(Clone, Copy)]
struct Linked {
    /// An ancestor in its tree, or [`NONE`] at the root. Path compression moves it upwards.
    ancestor: u32,
    /// The least `semi` on the path up to, but without, the ancestor; of a node that is not linked
    /// yet, its own number.
    least: u32,
    /// The node on that path with the least `semi`. A node that is not linked yet has a list
    /// instead: the linked nodes whose `semi` it is, or [`NONE`] if there are none.
    label: u32,
}

impl Search {
    fn new(parents: Vec<u32>) -> Self {
        let alone = |least| Linked { ancestor: NONE, least, label: NONE };
        Search {
            forest: (0..).take(parents.len()).map(alone).collect(),
            is_deferred: vec![0; parents.len().div_ceil(64)],
            next: parents,
            path: Vec::new(),
        }
    }

    /// Returns the nearest dominators, from the sources of each node.
    fn run(mut self, sources: &Neighbours) -> Vec<u32> {
        let count = u32::try_from(self.next.len()).unwrap_or(NONE);
        for node in (1..count).rev() {
            let mut semi = node;
            sources.of(node).iter().for_each(|&source| semi = semi.min(self.least(source).least));
            let list = &mut self.forest[semi as usize].label;
            let next = std::mem::replace(list, node);
            let parent = std::mem::replace(&mut self.next[node as usize], next);
            self.forest[node as usize] = Linked { ancestor: parent, least: semi, label: node };
            self.empty_list(parent);
        }
        // Each list is emptied when the walk comes to a child of its `semi`, so none is left.
        let mut nearest = self.next;
        for node in 1..count as usize {
            if self.is_deferred[node / 64] >> (node % 64) & 1 == 1 {
                nearest[node] = nearest[nearest[node] as usize];
            }
        }
        nearest
    }

    /// Sets the nearest dominator of the nodes whose `semi` is `parent`: it is `parent`, or that of
    /// `label`, which is found later.
    fn empty_list(&mut self, parent: u32) {
        let list = &mut self.forest[parent as usize].label;
        let mut node = std::mem::replace(list, NONE);
        while node != NONE {
            let Linked { least, label, .. } = self.least(node);
            let is_deferred = least < parent;
            self.is_deferred[node as usize / 64] |= u64::from(is_deferred) << (node % 64);
            let nearest = if is_deferred { label } else { parent };
            node = std::mem::replace(&mut self.next[node as usize], nearest);
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

//! The dominators of a graph, by the algorithm of Lengauer and Tarjan, without recursion.
//!
//! A node dominates another if every path from the root to the other passes it. The nearest such
//! node is the parent in the tree of dominators. The retained size of a node is the sum of its
//! subtree. The simple form of the algorithm takes O(m log n) for every graph: "A fast algorithm
//! for finding dominators in a flowgraph", TOPLAS 1979.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::bytes::NodeBytes;
use super::nodes::NodeSet;
use super::{Graph, NONE, Neighbours};

/// Finds the nearest dominator of each node: [`NONE`] for the root, and for nodes that cannot be
/// reached from it.
pub(crate) fn nearest_dominators(graph: Graph, root: u32) -> Vec<u32> {
    let nodes = graph.len();
    let Walk { order, numbers, parents } = Walk::new(&graph, root);
    // The search has the edges by the numbers of the walk, and only there.
    let Graph { targets, sources: _ } = graph;
    let sources = targets.reversed(order.len(), |node| numbers[node as usize]);
    drop((targets, numbers));
    let nearest = Search::new(parents).run(&sources);
    drop(sources);
    let mut of = vec![NONE; nodes];
    for (&node, &number) in order.iter().zip(&nearest).skip(1) {
        of[node as usize] = order[number as usize];
    }
    of
}

/// Adds to the bytes of each node those of all nodes that it dominates.
pub(crate) fn add_dominated(nearest: &[u32], bytes: &mut NodeBytes) {
    // By node: the number of its children whose bytes are missing, or NONE once its own bytes are
    // added to those of its parent.
    let mut missing = vec![0_u32; nearest.len()];
    for &parent in nearest.iter().filter(|&&parent| parent != NONE) {
        missing[parent as usize] += 1;
    }
    for node in (0..).take(nearest.len()) {
        let mut at = node;
        while missing[at as usize] == 0 {
            missing[at as usize] = NONE;
            let parent = nearest[at as usize];
            if parent == NONE {
                break;
            }
            bytes.add(parent, bytes.get(at));
            missing[parent as usize] -= 1;
            at = parent;
        }
    }
}

/// The tree of dominators.
#[derive(Debug)]
pub(crate) struct Dominators {
    /// By node: its first child, or [`NONE`].
    first: Vec<u32>,
    /// By node: the next child of its parent; of a last child, the parent itself. [`NONE`] for a
    /// node without a parent.
    next: Vec<u32>,
    /// The last children of all nodes.
    last: NodeSet,
    /// Computed when the parent of a node is first needed.
    milestones: OnceLock<Milestones>,
}

/// The parents of some nodes in long rows of children, so that no row is walked to its end.
#[derive(Debug)]
struct Milestones {
    nodes: NodeSet,
    parents: FxHashMap<u32, u32>,
}

/// The number of children between two milestones.
const MILESTONE: usize = if cfg!(test) { 4 } else { 64 };

/// A step of a walk through the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    /// A node, before those that it dominates.
    Enter(u32),
    /// The same node, after them.
    Leave(u32),
}

impl Dominators {
    /// Makes the tree of the nearest dominators of all nodes.
    pub(crate) fn new(nearest: Vec<u32>) -> Self {
        let (mut first, mut next) = (vec![NONE; nearest.len()], nearest);
        let mut last = NodeSet::new(next.len());
        // Each parent in `next` is overwritten with the next sibling: no third array is needed.
        for node in (0..u32::try_from(next.len()).unwrap_or(NONE)).rev() {
            let parent = next[node as usize];
            if parent != NONE {
                match std::mem::replace(&mut first[parent as usize], node) {
                    NONE => _ = last.insert(node),
                    sibling => next[node as usize] = sibling,
                }
            }
        }
        Self { first, next, last, milestones: OnceLock::new() }
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns the nearest dominator of a node.
    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        let Milestones { nodes, parents } = self.milestones.get_or_init(|| self.milestones());
        let mut at = node;
        while !self.last.contains(at) && !nodes.contains(at) {
            at = Some(self.next[at as usize]).filter(|&next| next != NONE)?;
        }
        parents.get(&at).copied().or(Some(self.next[at as usize]))
    }

    fn milestones(&self) -> Milestones {
        let (mut nodes, mut parents) = (NodeSet::new(self.len()), FxHashMap::default());
        for parent in (0..).take(self.len()) {
            for child in self.children(parent).skip(MILESTONE).step_by(MILESTONE) {
                nodes.insert(child);
                parents.insert(child, parent);
            }
        }
        Milestones { nodes, parents }
    }

    /// Returns whether a node is the nearest dominator of any.
    #[inline]
    pub(crate) fn is_parent(&self, node: u32) -> bool {
        self.first[node as usize] != NONE
    }

    /// Returns the nodes whose nearest dominator is this node, in ascending order.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> + Clone {
        let first = Some(self.first[node as usize]).filter(|&first| first != NONE);
        std::iter::successors(first, |&child| self.sibling(child))
    }

    /// Walks through the tree from its root. The walk needs no memory.
    pub(crate) fn walk(&self, root: u32) -> impl Iterator<Item = Visit> {
        std::iter::successors(Some(Visit::Enter(root)), move |visit| self.after(*visit, root))
    }

    /// Returns the next step of a walk from a root.
    #[inline]
    pub(crate) fn after(&self, visit: Visit, root: u32) -> Option<Visit> {
        match visit {
            Visit::Enter(node) => Some(match self.first[node as usize] {
                NONE => Visit::Leave(node),
                child => Visit::Enter(child),
            }),
            Visit::Leave(node) if node == root => None,
            Visit::Leave(node) => Some(match self.sibling(node) {
                Some(sibling) => Visit::Enter(sibling),
                None => Visit::Leave(self.next[node as usize]),
            }),
        }
    }

    /// Returns the next child of the parent of a node that has one.
    #[inline]
    fn sibling(&self, child: u32) -> Option<u32> {
        (!self.last.contains(child)).then(|| self.next[child as usize])
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
    /// The nodes whose `next` is another node, which has the same nearest dominator.
    deferred: NodeSet,
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
            deferred: NodeSet::new(parents.len()),
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
        for node in self.deferred.iter() {
            nearest[node as usize] = nearest[nearest[node as usize] as usize];
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
            let nearest = if least < parent { label } else { parent };
            if least < parent {
                self.deferred.insert(node);
            }
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

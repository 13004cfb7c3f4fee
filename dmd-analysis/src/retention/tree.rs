//! The largest retained subtrees: the tree of dominators, with alike nodes grouped and small ones
//! as `<other>`.
//!
//! A block that a block of the same kind dominates belongs to that block's node: a list or a tree
//! of a million nodes is one line. The retained size of a node is its own size plus the retained
//! sizes of its children.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::graph::node_list::NodeList;
use super::kinds::{Key, Keys, frame};
use super::roots::{ExternalRoot, HandleCount, RootName};
use super::{NONE, Retention};
use crate::analysis::number::percent;

/// The limits of the tree.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TreeOptions {
    /// The number of children of a node; the rest are `<other>`.
    pub top: usize,
    /// The share of the heap, in percent, below which nodes are `<other>`.
    pub min_percent: f64,
    /// The number of levels below the heap.
    pub depth: usize,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self { top: 10, min_percent: 1.0, depth: 12 }
    }
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetainedNode {
    /// The blocks or roots that the node represents.
    pub name: RetainedName,
    /// The bytes that would be freed with it: its own and those of its children.
    pub bytes: u64,
    /// The bytes of its own blocks.
    pub own: u64,
    /// The number of its own blocks.
    pub blocks: u64,
    /// The nodes that it dominates, largest first, `<other>` last.
    pub children: Vec<RetainedNode>,
}

/// The blocks or roots that a node of the tree represents.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetainedName {
    /// All blocks of the dump.
    Heap,
    /// A static of the program.
    Static(String),
    /// Other memory outside the heap, such as a thread's stack.
    Outside(String),
    /// The blocks and cycles that an external root holds.
    External(ExternalRoot),
    /// The blocks that several nodes hold, and none of them alone.
    Shared,
    /// Equal cycles.
    Cycles {
        /// The number of cycles.
        count: u64,
        /// The result of comparing their counts with their handles.
        handles: HandleCount,
    },
    /// The blocks of one type that one line of the program allocated.
    Blocks {
        /// Their type, in words.
        block_type: String,
        /// The program's own frame that allocated them.
        site: Option<String>,
        /// The address, if it is one block.
        address: Option<u64>,
    },
    /// The number of nodes that are too small, or beyond the limit.
    Other(u64),
}

/// A group of alike nodes.
struct Group {
    key: Key,
    nodes: NodeList,
    retained: u64,
}

impl Group {
    fn add(&mut self, node: u32, retention: &Retention<'_>) {
        self.nodes.push(node);
        self.retained = self.retained.saturating_add(retention.retained.get(node));
    }
}

impl Retention<'_> {
    /// Returns the tree of the largest retained subtrees.
    #[must_use]
    pub fn tree(&self, options: &TreeOptions) -> RetainedNode {
        let forest = Forest { retention: self, keys: Keys::new(self), options };
        let children = self.dominators.children(self.root()).collect();
        let mut heap = RetainedNode::new(RetainedName::Heap, self.heap());
        heap.children = forest.children(children, options.depth.min(MOST_LEVELS), Keys::of_root);
        heap
    }
}

/// The maximum depth, because the tree is built, printed and dropped by recursion.
const MOST_LEVELS: usize = 200;

impl RetainedNode {
    fn new(name: RetainedName, bytes: u64) -> Self {
        Self { name, bytes, own: 0, blocks: 0, children: Vec::new() }
    }
}

struct Forest<'h> {
    retention: &'h Retention<'h>,
    keys: Keys,
    options: &'h TreeOptions,
}

impl Forest<'_> {
    /// Returns the nodes for these, with alike ones grouped, down to this depth.
    fn children(
        &self,
        nodes: NodeList,
        depth: usize,
        key: fn(&Keys, &Retention<'_>, u32) -> Key,
    ) -> Vec<RetainedNode> {
        let mut groups = self.groups(&nodes, key);
        drop(nodes);
        groups.sort_by_key(|group| (Reverse(group.retained), group.key));
        let heap = i128::from(self.retention.heap());
        let is_large = |group: &Group| {
            percent(group.retained.into(), heap) >= self.options.min_percent && depth > 0
        };
        let shown = groups.iter().take(self.options.top).take_while(|group| is_large(group));
        let rest = groups.split_off(shown.count());
        let mut children: Vec<RetainedNode> =
            groups.into_iter().map(|group| self.expand(group, depth - 1)).collect();
        if !rest.is_empty() {
            let bytes = rest.iter().map(|group| group.retained).fold(0, u64::saturating_add);
            children.push(RetainedNode::new(RetainedName::Other(rest.len() as u64), bytes));
        }
        children
    }

    fn groups(&self, nodes: &NodeList, key: fn(&Keys, &Retention<'_>, u32) -> Key) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut places: FxHashMap<Key, usize> = FxHashMap::default();
        for node in nodes.iter() {
            let key = key(&self.keys, self.retention, node);
            let at = *places.entry(key).or_insert_with(|| {
                groups.push(Group { key, nodes: NodeList::default(), retained: 0 });
                groups.len() - 1
            });
            groups[at].add(node, self.retention);
        }
        groups
    }

    fn expand(&self, group: Group, depth: usize) -> RetainedNode {
        let Group { key, nodes, retained } = group;
        let mut shown = RetainedNode::new(self.name(key, &nodes), retained);
        if let Key::External(_) = key {
            shown.children = self.children(nodes, depth, Keys::of);
            return shown;
        }
        let (mut alike, mut dominated) = (Vec::new(), NodeList::default());
        for first in nodes.iter() {
            alike.push(first);
            while let Some(node) = alike.pop() {
                shown.own = shown.own.saturating_add(self.retention.size(node));
                shown.blocks = shown.blocks.saturating_add(self.retention.count(node));
                for child in self.retention.dominators.children(node) {
                    let is_same = self.keys.of(self.retention, child) == key;
                    if is_same { alike.push(child) } else { dominated.push(child) }
                }
            }
        }
        drop(nodes);
        if let (RetainedName::Blocks { address, .. }, 2..) = (&mut shown.name, shown.blocks) {
            *address = None;
        }
        shown.children = self.children(dominated, depth, Keys::of);
        shown
    }

    fn name(&self, key: Key, nodes: &NodeList) -> RetainedName {
        match key {
            Key::Root => RetainedName::Heap,
            Key::Static(at) => {
                let RootName { name, is_static } = self.retention.roots.statics[at].name.clone();
                if is_static { RetainedName::Static(name) } else { RetainedName::Outside(name) }
            }
            Key::External(NONE) => RetainedName::Shared,
            Key::External(number) => {
                RetainedName::External(self.retention.roots.external[number as usize].clone())
            }
            Key::Cycle(at) => {
                let handles = self.retention.roots.cycles[at].handles;
                RetainedName::Cycles { count: nodes.len() as u64, handles }
            }
            Key::Kind(number) => {
                let site = self.retention.sites.numbered(number);
                RetainedName::Blocks {
                    block_type: site.block_type.describe(),
                    site: frame(site).cloned(),
                    address: nodes.iter().next().map(|node| self.retention.address(node as usize)),
                }
            }
        }
    }
}

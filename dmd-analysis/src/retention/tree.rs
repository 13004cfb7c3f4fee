//! The biggest retained subtrees: the tree of dominators from the root down, alike nodes as one, small ones as `<other>`.
//!
//! Blocks of one kind that are held by another of the same are that one's: a list or a tree of a million nodes is one line.
//! What a node has itself and what its kids retain add up to what it retains.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::alike::{Key, Keys, frame};
use super::circle::Counted;
use super::roots::Outside;
use super::{Holds, NONE};
use crate::analysis::number::percent;

/// What of the tree is shown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TreeOptions {
    /// The kids of a node that are shown; others are `<other>`.
    pub top: usize,
    /// Nodes that retain less than so many percent of the heap are `<other>`.
    pub min_percent: f64,
    /// Levels below the heap.
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
pub struct Retained {
    /// What it stands for.
    pub name: RetainedName,
    /// The bytes that would be given back with it: its own and those of its kids.
    pub bytes: u64,
    /// The bytes of its own blocks.
    pub own: u64,
    /// How many blocks of its own it has.
    pub blocks: u64,
    /// What is held through it alone, largest first, `<other>` last.
    pub kids: Vec<Retained>,
}

/// What a node of the tree stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetainedName {
    /// All blocks of the dump.
    Heap,
    /// A static of the program.
    Static(String),
    /// Blocks and cycles that nothing in the dump points at, by what is known of who holds them.
    Outside(Outside),
    /// Blocks that several of these hold, and none alone.
    Shared,
    /// So many cycles that are alike, and what their counts say.
    Cycles(u64, Counted),
    /// Blocks of one type that one line of the program allocated.
    Blocks {
        /// Their type, in words.
        block_type: String,
        /// The program's own frame that allocated them.
        site: Option<String>,
        /// The address, if it is one block.
        address: Option<u64>,
    },
    /// So many nodes that are too small, or beyond the first.
    Other(u64),
}

/// Nodes that are alike.
struct Group {
    key: Key,
    nodes: Vec<u32>,
    retained: u64,
}

impl Group {
    fn add(&mut self, node: u32, holds: &Holds<'_>) {
        self.nodes.push(node);
        self.retained = self.retained.saturating_add(holds.retained[node as usize]);
    }
}

impl Holds<'_> {
    /// The biggest retained subtrees.
    #[must_use]
    pub fn tree(&self, options: &TreeOptions) -> Retained {
        let forest = Forest { holds: self, keys: Keys::new(self), options };
        let kids = self.dominators.kids(self.root()).to_vec();
        let mut heap = Retained::new(RetainedName::Heap, self.heap());
        heap.kids = forest.kids(kids, options.depth.min(MOST_LEVELS), Keys::of_root);
        heap
    }
}

/// The tree is built, shown and dropped level by level on the stack.
const MOST_LEVELS: usize = 200;

impl Retained {
    fn new(name: RetainedName, bytes: u64) -> Self {
        Self { name, bytes, own: 0, blocks: 0, kids: Vec::new() }
    }
}

struct Forest<'h> {
    holds: &'h Holds<'h>,
    keys: Keys,
    options: &'h TreeOptions,
}

impl Forest<'_> {
    /// The shown nodes for these, alike ones together, down to so many levels.
    fn kids(
        &self,
        nodes: Vec<u32>,
        depth: usize,
        key: fn(&Keys, &Holds<'_>, u32) -> Key,
    ) -> Vec<Retained> {
        let mut groups = self.groups(nodes, key);
        groups.sort_by_key(|group| (Reverse(group.retained), group.key));
        let heap = i128::from(self.holds.heap());
        let is_shown = |group: &Group| {
            percent(group.retained.into(), heap) >= self.options.min_percent && depth > 0
        };
        let shown = groups.iter().take(self.options.top).take_while(|group| is_shown(group));
        let rest = groups.split_off(shown.count());
        let mut kids: Vec<Retained> =
            groups.into_iter().map(|group| self.expand(group, depth - 1)).collect();
        if !rest.is_empty() {
            let bytes = rest.iter().map(|group| group.retained).fold(0, u64::saturating_add);
            kids.push(Retained::new(RetainedName::Other(rest.len() as u64), bytes));
        }
        kids
    }

    fn groups(&self, nodes: Vec<u32>, key: fn(&Keys, &Holds<'_>, u32) -> Key) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut places: FxHashMap<Key, usize> = FxHashMap::default();
        for node in nodes {
            let key = key(&self.keys, self.holds, node);
            let at = *places.entry(key).or_insert_with(|| {
                groups.push(Group { key, nodes: Vec::new(), retained: 0 });
                groups.len() - 1
            });
            groups[at].add(node, self.holds);
        }
        groups
    }

    fn expand(&self, group: Group, depth: usize) -> Retained {
        let Group { key, mut nodes, retained } = group;
        let mut shown = Retained::new(self.name(key, &nodes), retained);
        if let Key::Outside(_) = key {
            shown.kids = self.kids(nodes, depth, Keys::of);
            return shown;
        }
        let mut held = Vec::new();
        while let Some(node) = nodes.pop() {
            shown.own = shown.own.saturating_add(self.holds.size(node));
            shown.blocks = shown.blocks.saturating_add(self.holds.count(node));
            for &kid in self.holds.dominators.kids(node) {
                let is_same = self.keys.of(self.holds, kid) == key;
                if is_same { nodes.push(kid) } else { held.push(kid) }
            }
        }
        if let (RetainedName::Blocks { address, .. }, 2..) = (&mut shown.name, shown.blocks) {
            *address = None;
        }
        shown.kids = self.kids(held, depth, Keys::of);
        shown
    }

    fn name(&self, key: Key, nodes: &[u32]) -> RetainedName {
        match key {
            Key::Root => RetainedName::Heap,
            Key::Static(at) => RetainedName::Static(self.holds.roots.statics[at].clone()),
            Key::Outside(NONE) => RetainedName::Shared,
            Key::Outside(number) => {
                RetainedName::Outside(self.holds.roots.outside[number as usize].clone())
            }
            Key::Cycle(at) => {
                let counted = self.holds.roots.cycles[at].counted;
                RetainedName::Cycles(nodes.len() as u64, counted)
            }
            Key::Kind(number) => {
                let site = self.holds.sites.numbered(number);
                RetainedName::Blocks {
                    block_type: site.block_type.describe(),
                    site: frame(site).cloned(),
                    address: nodes.first().map(|&node| self.holds.address(node as usize)),
                }
            }
        }
    }
}

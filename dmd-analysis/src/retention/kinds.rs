//! Kinds of nodes: alike nodes are grouped, so that a thousand of them take one line.

use rustc_hash::FxHashMap;

use super::{NONE, Node, Retention};
use crate::analysis::frames::{Site, Sites};

/// The key by which alike nodes are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// Nodes that only the external root with this number holds; [`NONE`] if several nodes hold
    /// them.
    External(u32),
    /// The static with this number.
    Static(usize),
    /// Cycles equal to the one with this number.
    Cycle(usize),
    /// Blocks of the kind with this number.
    Kind(usize),
    /// The root.
    Root,
}

/// The kinds of blocks: blocks of one type from one line of the program, whatever the callers.
///
/// The kind ignores callers because a recursive function has a different stack at every depth.
#[derive(Debug)]
pub(crate) struct Kinds {
    /// By site: the number of the first site of its kind.
    by_site: Vec<usize>,
}

impl Kinds {
    /// Groups the sites of a dump.
    pub(crate) fn new(sites: &Sites) -> Self {
        let mut first: FxHashMap<_, usize> = FxHashMap::default();
        let by_site = sites
            .iter()
            .enumerate()
            .map(|(number, site)| *first.entry((&site.block_type, frame(site))).or_insert(number));
        Self { by_site: by_site.collect() }
    }

    /// Returns the number of a block's kind, which is the number of a site.
    pub(crate) fn of(&self, retention: &Retention<'_>, block: usize) -> usize {
        self.by_site[retention.sites.of(retention.dump.blocks.at(block).kind.alloc)]
    }
}

/// Returns the program's own frame of a site, or else the innermost frame.
pub(crate) fn frame(site: &Site) -> Option<&String> {
    site.own.as_ref().or(site.frames.first())
}

/// The keys of nodes, with the keys of cycles computed once.
#[derive(Debug)]
pub(crate) struct Keys {
    /// By cycle: the number of the first that is equal.
    cycles: Vec<usize>,
}

impl Keys {
    /// Computes the keys of all cycles.
    pub(crate) fn new(retention: &Retention<'_>) -> Self {
        let mut first: FxHashMap<_, usize> = FxHashMap::default();
        let cycles = retention.roots.cycles.iter().enumerate();
        let cycles = cycles.map(|(at, cycle)| {
            let key = (cycle.external, cycle.handles, retention.cycle_key(at));
            *first.entry(key).or_insert(at)
        });
        Self { cycles: cycles.collect() }
    }

    /// Returns the key of a node.
    pub(crate) fn of(&self, retention: &Retention<'_>, node: u32) -> Key {
        match retention.node(node) {
            Node::Block(block) => Key::Kind(retention.kinds.of(retention, block)),
            Node::Static(at) => Key::Static(at),
            Node::Cycle(at) => Key::Cycle(self.cycles[at]),
            Node::Root => Key::Root,
        }
    }

    /// Returns the key of a node that the root dominates: for blocks and cycles, the external root.
    pub(crate) fn of_root(&self, retention: &Retention<'_>, node: u32) -> Key {
        match retention.node(node) {
            Node::Cycle(at) => Key::External(retention.roots.cycles[at].external),
            Node::Block(_) => match retention.roots.external_of(node) {
                Some(external) => Key::External(external),
                // Several nodes hold it, and none of them alone.
                None => Key::External(NONE),
            },
            Node::Static(_) | Node::Root => self.of(retention, node),
        }
    }
}

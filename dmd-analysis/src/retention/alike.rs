//! What makes nodes alike, so that a thousand of them are one line.

use rustc_hash::FxHashMap;

use super::{Holds, NONE, Node};
use crate::analysis::sites::{Site, Sites};

/// What nodes have in common. A number is of a list that the kind tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// Nothing in the dump points at them, and this is known of who does.
    Outside(u32),
    /// They are one static.
    Static(usize),
    /// They are cycles like this one.
    Cycle(usize),
    /// They are blocks of one kind.
    Kind(usize),
    /// They are the root.
    Root,
}

/// Kinds of blocks: those of one type from one line of the program, by whichever callers.
///
/// A function that calls itself has as many stacks as it is deep, and what it makes is alike all the same.
#[derive(Debug)]
pub(crate) struct Kinds {
    /// By site: the first of its kind.
    by_site: Vec<usize>,
}

impl Kinds {
    pub(crate) fn new(sites: &Sites) -> Self {
        let mut first: FxHashMap<_, usize> = FxHashMap::default();
        let by_site = sites
            .iter()
            .enumerate()
            .map(|(number, site)| *first.entry((&site.block_type, frame(site))).or_insert(number));
        Self { by_site: by_site.collect() }
    }

    /// The number of a block's kind, which is that of a site.
    pub(crate) fn of(&self, holds: &Holds<'_>, block: usize) -> usize {
        self.by_site[holds.sites.of(holds.dump.blocks[block].alloc)]
    }
}

/// The program's own frame that allocated blocks, or else the innermost.
pub(crate) fn frame(site: &Site) -> Option<&String> {
    site.own.as_ref().or(site.frames.first())
}

/// The keys of cycles, told once.
#[derive(Debug)]
pub(crate) struct Keys {
    /// By cycle: the first that it is like.
    cycles: Vec<usize>,
}

impl Keys {
    pub(crate) fn new(holds: &Holds<'_>) -> Self {
        let mut first: FxHashMap<_, usize> = FxHashMap::default();
        let cycles = holds.roots.cycles.iter().enumerate();
        let cycles = cycles.map(|(at, cycle)| {
            let key = (cycle.outside, cycle.counted, holds.cycle_key(at));
            *first.entry(key).or_insert(at)
        });
        Self { cycles: cycles.collect() }
    }

    /// What makes a node like others.
    pub(crate) fn of(&self, holds: &Holds<'_>, node: u32) -> Key {
        match holds.node(node) {
            Node::Block(block) => Key::Kind(holds.kinds.of(holds, block)),
            Node::Static(at) => Key::Static(at),
            Node::Cycle(at) => Key::Cycle(self.cycles[at]),
            Node::Root => Key::Root,
        }
    }

    /// The same of a node that the root holds: blocks and cycles are told by who is known to hold them.
    pub(crate) fn of_root(&self, holds: &Holds<'_>, node: u32) -> Key {
        match holds.node(node) {
            Node::Cycle(at) => Key::Outside(holds.roots.cycles[at].outside),
            Node::Block(_) => match holds.roots.outside_of(node) {
                Some(outside) => Key::Outside(outside),
                // Several hold it, and none of them alone.
                None => Key::Outside(NONE),
            },
            Node::Static(_) | Node::Root => self.of(holds, node),
        }
    }
}

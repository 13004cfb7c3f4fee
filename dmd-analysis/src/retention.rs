//! Retention: what each block of a scan dump keeps alive, and which paths keep a block alive.
//!
//! Every word of a block that points at or into another block counts as a pointer. That includes
//! stale words in spare capacity, and a `Weak` counts like an `Arc`. Statics and other blocks hold
//! blocks. So do places that a dump does not contain: the stacks and registers of threads, and the
//! data of libraries. A block that nothing in the dump points at counts as held from there, and so
//! does a cycle that nothing outside of it points at. Therefore every block has a path from the
//! root, and the retained sizes add up to the heap.

pub(crate) mod graph;
pub(crate) mod roots;
mod reachable;
mod kinds;
mod step;
mod cycle;
mod groups;
mod tree;
mod why_alive;
mod text;
mod json;

pub use cycle::Cycle;
pub use groups::RetainedGroup;
pub use json::{write_groups_json, write_tree_json, write_why_alive_json};
pub use reachable::{Left, left, reachable_blocks};
pub use roots::{ExternalRoot, HandleCount};
pub use step::{Pointer, Step, StepPlace};
pub use text::{write_cycles, write_groups, write_tree, write_why_alive};
pub use tree::{RetainedName, RetainedNode, TreeOptions};
pub use why_alive::{PathOptions, PathToRoot, Target, TargetNotFound, WhyAlive};

#[cfg(test)]
pub(crate) mod tests;

use std::sync::OnceLock;

use crate::analysis::ClampError;
use crate::analysis::ExplainOptions;
use crate::analysis::frames::{Sites, Style};
use crate::analysis::scan::links::BlockRanges;
use crate::read::{Dump, Mode, Sum};
use graph::bytes::NodeBytes;
use graph::dominators::{Dominators, add_dominated};
use graph::edges::{Edges, SharedEdges};
use graph::nodes::NodeSet;
use graph::sources::Nearest;
use kinds::Kinds;
use roots::Roots;

/// The number that stands for no node.
pub(crate) const NONE: u32 = u32::MAX;

/// The retention graph of a dump: which block keeps which alive.
///
/// # Examples
///
/// ```
/// use memreport_analysis::analysis::ExplainOptions;
/// use memreport_analysis::retention::Retention;
///
/// // The block at 0x100 points at the one at 0x200.
/// let dump = memreport_analysis::read::read_slice(
///     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "scan"},
///          "blockList": [{"req": 16, "addr": "100", "contents": ["200", "0"]},
///                        {"req": 1000, "addr": "200"}],
///          "traceTable": {}, "frameTable": {}}"##,
/// )?;
/// let options = ExplainOptions::default();
/// let retention = Retention::new(&dump, &options)?;
/// assert_eq!(retention.retained_by_block(0), 1016);
/// assert_eq!(retention.retained_by_block(1), 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Retention<'d> {
    dump: &'d Dump,
    options: &'d ExplainOptions,
    ranges: BlockRanges<'d>,
    sites: Sites,
    roots: Roots,
    /// The nodes with several sources.
    several: NodeSet,
    dominators: Dominators,
    /// Paths and groups need it alone, so it is built when it is first needed.
    shared: OnceLock<SharedEdges>,
    kinds: Kinds,
    /// By node: its retained size in bytes.
    retained: NodeBytes,
}

/// The meaning of a number of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    /// The block with this index in the dump.
    Block(usize),
    /// The static with this index in the roots.
    Static(usize),
    /// The loose cycle with this index in the roots.
    Cycle(usize),
    /// The root, which holds statics, loose cycles and heads.
    Root,
}

impl<'d> Retention<'d> {
    /// Builds the graph of a dump and its tree of dominators.
    ///
    /// # Errors
    ///
    /// If the dump is not a scan, or if it is damaged.
    pub fn new(dump: &'d Dump, options: &'d ExplainOptions) -> Result<Self, ClampError> {
        if dump.invocation.mode != Mode::Scan {
            return Err(ClampError::NotScan);
        }
        let ranges = BlockRanges::new(dump)?;
        let style = Style { root: options.root.as_deref(), width: 0 };
        let sites = Sites::new(dump, options.max_frames, &style);
        let (roots, sources) = roots::find(&ranges, &sites, &style);
        ranges.check_words()?;
        let nodes = sources.len();
        let root = u32::try_from(nodes - 1).unwrap_or(NONE);
        let Nearest { of, several } = sources.into_dominators(root);
        let sizes = dump.blocks.iter().map(|block| block.usable().saturating_mul(block.num));
        let mut retained = NodeBytes::new(nodes, sizes);
        add_dominated(&of, &mut retained);
        let dominators = Dominators::new(of);
        let (kinds, shared) = (Kinds::new(&sites), OnceLock::new());
        Ok(Self {
            dump,
            options,
            ranges,
            sites,
            roots,
            several,
            dominators,
            shared,
            kinds,
            retained,
        })
    }

    /// Returns the bytes of all blocks.
    #[must_use]
    pub fn heap(&self) -> u64 {
        self.retained.get(self.root())
    }

    /// Returns the blocks from before tracking began or while it was off. No other figure contains
    /// them.
    #[must_use]
    pub fn untracked(&self) -> Sum {
        self.dump.extension.as_ref().map_or(Sum::default(), |ours| ours.untracked)
    }

    /// Returns the bytes that would be freed with a block: its own, and those of all
    /// blocks that it dominates.
    ///
    /// `block` is the index of the block in the dump.
    ///
    /// # Panics
    ///
    /// If the dump has no such block.
    #[must_use]
    pub fn retained_by_block(&self, block: usize) -> u64 {
        assert!(block < self.dump.blocks.len(), "the dump has no block {block}");
        self.retained.get(u32::try_from(block).unwrap_or(NONE))
    }

    /// Checks that all words could be read so far.
    ///
    /// Paths, cycles and groups read words of the dump's blocks once more. Without all of them,
    /// such an answer is not complete.
    ///
    /// # Errors
    ///
    /// If the dump's file has become shorter or unreadable.
    pub fn check_words(&self) -> Result<(), ClampError> {
        self.ranges.check_words()
    }

    /// Returns the edges of the graph.
    fn edges(&self) -> Edges<'_> {
        let shared = || {
            let edges = self.roots.edges_to(&self.several, &self.ranges);
            SharedEdges::new(self.dominators.len(), edges)
        };
        Edges::new(&self.dominators, self.shared.get_or_init(shared))
    }

    /// Returns the blocks that a block points at, in ascending order.
    fn targets(&self, block: u32) -> Vec<u32> {
        let mut targets = Vec::new();
        self.ranges.each_link_of(block, |link| targets.push(link.to));
        targets.retain(|&target| target != block);
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Returns whether a node points at another, and no other node does.
    fn is_only_source(&self, node: u32, of: u32) -> bool {
        !self.several.contains(of) && self.dominators.parent(of) == Some(node)
    }

    fn root(&self) -> u32 {
        u32::try_from(self.dominators.len() - 1).unwrap_or(NONE)
    }

    /// Returns the nodes of all blocks.
    fn blocks(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.dump.blocks.len()).unwrap_or(NONE)
    }

    fn node(&self, number: u32) -> Node {
        let at = number as usize;
        let blocks = self.dump.blocks.len();
        let statics = blocks + self.roots.statics.len();
        match () {
            () if at < blocks => Node::Block(at),
            () if at < statics => Node::Static(at - blocks),
            () if number == self.root() => Node::Root,
            () => Node::Cycle(at - statics),
        }
    }

    /// Returns the bytes of a node itself.
    fn size(&self, number: u32) -> u64 {
        let block = self.dump.blocks.get(number as usize);
        block.map_or(0, |block| block.usable().saturating_mul(block.num))
    }

    /// Returns the number of blocks that a node represents.
    fn count(&self, number: u32) -> u64 {
        self.dump.blocks.get(number as usize).map_or(0, |block| block.num)
    }

    fn address(&self, block: usize) -> u64 {
        self.dump.blocks.at(block).addr.map_or(0, u64::from)
    }
}

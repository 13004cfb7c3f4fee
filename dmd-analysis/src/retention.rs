//! Who holds whom, in a scan dump: what each block keeps alive, and by which ways it is kept itself.
//!
//! Every word of a block that leads to or into another block counts as a pointer, whatever it is: spare room has words of its
//! last life, a `Weak` counts as an `Arc`. Blocks are held by statics, by each other, and from where no dump looks: the
//! stacks and registers of threads, the data of libraries. What nothing in the dump points at is taken to be held from there,
//! and so is a cycle that nothing outside points at, so that every block has a way from the root and all sums are whole.

mod graph;
mod dominators;
mod cycles;
mod paths;
mod roots;
mod step;
mod alike;
mod tree;
mod groups;
mod circle;
mod held;
mod text;
mod json;

pub use circle::{Circle, Counted};
pub use groups::HeldGroup;
pub use held::{Held, NotThere, Target, Way, WayOptions};
pub use json::{write_groups_json, write_held_json, write_tree_json};
pub use roots::Outside;
pub use step::{Place, Pointer, Step};
pub use text::{write_circles, write_groups, write_held, write_tree};
pub use tree::{Retained, RetainedName, TreeOptions};

#[cfg(test)]
mod tests;

use crate::analysis::clamp::ClampError;
use crate::analysis::links::Ranges;
use crate::analysis::people::Style;
use crate::analysis::sites::{ExplainOptions, Sites};
use crate::read::{Dump, Mode};
use alike::Kinds;
use dominators::Dominators;
use graph::Graph;
use roots::Roots;

/// No node.
const NONE: u32 = u32::MAX;

/// Who holds whom in a dump.
///
/// # Examples
///
/// ```
/// use memreport_analysis::analysis::ExplainOptions;
/// use memreport_analysis::retention::Holds;
///
/// // The block at 0x100 points at the one at 0x200.
/// let dump = memreport_analysis::read::read_slice(
///     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "scan"},
///          "blockList": [{"req": 16, "addr": "100", "contents": ["200", "0"]}, {"req": 1000, "addr": "200"}],
///          "traceTable": {}, "frameTable": {}}"##,
/// )?;
/// let options = ExplainOptions::default();
/// let holds = Holds::new(&dump, &options)?;
/// assert_eq!((holds.retained_by_block(0), holds.retained_by_block(1)), (1016, 1000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Holds<'d> {
    dump: &'d Dump,
    options: &'d ExplainOptions,
    ranges: Ranges,
    sites: Sites,
    /// Nodes are the blocks by their places in the dump, the statics, the cycles that nothing outside points at, and the root.
    graph: Graph,
    roots: Roots,
    dominators: Dominators,
    kinds: Kinds,
    /// By node, in bytes.
    retained: Vec<u64>,
}

/// What a number of the graph stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    /// By its place in the dump.
    Block(usize),
    /// By its place among the roots' statics.
    Static(usize),
    /// By its place among the roots' cycles.
    Cycle(usize),
    /// What holds all that nothing else does.
    Root,
}

impl<'d> Holds<'d> {
    /// Finds out who holds whom.
    ///
    /// # Errors
    ///
    /// If the dump is no scan, or damaged.
    pub fn new(dump: &'d Dump, options: &'d ExplainOptions) -> Result<Self, ClampError> {
        if dump.invocation.mode != Mode::Scan {
            return Err(ClampError::NotScan);
        }
        let ranges = Ranges::new(dump)?;
        let style = Style { root: options.root.as_deref(), width: 0 };
        let sites = Sites::new(dump, options.max_frames, &style);
        let (graph, roots) = roots::find(dump, &ranges, &sites, &style);
        let root = u32::try_from(graph.len() - 1).unwrap_or(NONE);
        let dominators = Dominators::new(&graph, root);
        let mut sizes: Vec<u64> =
            dump.blocks.iter().map(|block| block.usable().saturating_mul(block.num)).collect();
        sizes.resize(graph.len(), 0);
        let retained = dominators.retained(sizes);
        let kinds = Kinds::new(&sites);
        Ok(Self { dump, options, ranges, sites, graph, roots, dominators, kinds, retained })
    }

    /// The bytes of all blocks.
    #[must_use]
    pub fn heap(&self) -> u64 {
        self.retained[self.root() as usize]
    }

    /// The bytes that would be given back with a block, by its place in the dump: its own, and those of all that is held
    /// through it alone.
    ///
    /// # Panics
    ///
    /// If the dump has no such block.
    #[must_use]
    pub fn retained_by_block(&self, block: usize) -> u64 {
        assert!(block < self.dump.blocks.len(), "the dump has no block {block}");
        self.retained[block]
    }

    fn root(&self) -> u32 {
        u32::try_from(self.graph.len() - 1).unwrap_or(NONE)
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

    /// The bytes of a node itself.
    fn size(&self, number: u32) -> u64 {
        let block = self.dump.blocks.get(number as usize);
        block.map_or(0, |block| block.usable().saturating_mul(block.num))
    }

    /// How many blocks a node is.
    fn count(&self, number: u32) -> u64 {
        self.dump.blocks.get(number as usize).map_or(0, |block| block.num)
    }

    fn address(&self, block: usize) -> u64 {
        self.dump.blocks[block].addr.map_or(0, u64::from)
    }
}

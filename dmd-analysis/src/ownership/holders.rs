//! The holder of each block: of its strongest pointers, the nearest node that all of them come
//! through.

mod strongest;
mod cycles;
mod handles;

use crate::analysis::scan::links::BlockRanges;
use crate::retention::graph::dominators::Dominators;
use crate::retention::graph::narrow::NarrowNumbers;
use crate::retention::graph::nodes::NodeSet;
use crate::retention::graph::sources::Nearest;

use self::strongest::{Shared, Strongest, shared_with};
use super::claims::Claims;
use super::roots::Roots;
use super::shape::LabelId;

/// The tree of holders.
pub(super) struct Holders {
    pub(super) dominators: Dominators,
    pub(super) root: u32,
    /// By block: the label of its only strongest pointer; any for those that have several.
    labels: NarrowNumbers,
    /// The nodes with several strongest pointers.
    several: NodeSet,
    /// The strongest pointers to these, sorted by the block.
    shared: Vec<Shared>,
}

impl Holders {
    /// Finds the holders of all blocks.
    pub(super) fn new(
        ranges: &BlockRanges<'_>,
        claims: &mut Claims<'_, '_, '_>,
        roots: &Roots<'_>,
    ) -> Self {
        let root = roots.external;
        let mut strongest = Strongest::new(claims, ranges.dump().blocks.len());
        for (source, node) in roots.sources.iter().zip(roots.first..) {
            strongest.only[node as usize] = roots.holder_of(source);
        }
        cycles::hang(&mut strongest, claims, root);
        claims.keep_layouts();
        let handles = handles::find(ranges, roots);
        let sources = handles::sources(handles, &mut strongest, root);
        let Nearest { of, several } = sources.into_dominators(root);
        let (labels, shared) = strongest.into_labels();
        Self { dominators: Dominators::new(of), root, labels, several, shared }
    }

    /// Returns the strongest pointers to the blocks that have several, sorted by the block.
    pub(super) fn shared(&self) -> &[Shared] {
        &self.shared
    }

    /// Returns the label of the pointer from a block's holder, if the holder has one.
    pub(super) fn label(&self, block: u32) -> Option<LabelId> {
        if !self.several.contains(block) {
            return Some(LabelId(self.labels.get(block)));
        }
        let holder = self.dominators.parent(block)?;
        let mut into = shared_with(&self.shared, block).iter();
        into.find(|shared| shared.from == holder).map(|shared| shared.label)
    }

    /// Returns whether only words that look like pointers lead to a block with several pointers.
    pub(super) fn is_by_words(&self, block: u32) -> bool {
        let mut into = shared_with(&self.shared, block).iter();
        into.all(|shared| shared.label == LabelId::WORD)
    }
}

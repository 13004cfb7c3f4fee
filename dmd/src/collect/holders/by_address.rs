//! Blocks that were found before the pass over all blocks, for that pass.

use crate::table::packed_block::PackedBlock;

/// A block that was found before the pass.
pub(crate) trait FoundBlock {
    /// Returns the first address of the block.
    fn start(&self) -> usize;

    /// Returns the block's packed word: a later block at this address has another.
    fn identity(&self) -> u64;
}

/// The blocks that a pass over all blocks, in the order of their addresses, has not met yet.
#[derive(Debug)]
pub(crate) struct ByAddress<'b, B>(&'b [B]);

impl<'b, B: FoundBlock> ByAddress<'b, B> {
    /// Takes blocks that are sorted by their starts.
    pub(crate) fn new(sorted: &'b [B]) -> Self {
        ByAddress(sorted)
    }

    /// Returns what was found of a block; `None` if it was not found. No later call may be for a
    /// lower address.
    #[inline]
    pub(crate) fn find(&mut self, start: usize, packed: PackedBlock) -> Option<&'b B> {
        while let Some((block, rest)) = self.0.split_first()
            && block.start() <= start
        {
            self.0 = rest;
            if block.start() == start && block.identity() == packed.word() {
                return Some(block);
            }
        }
        None
    }
}

//! Looks up blocks in batches: the words of a later batch are prefetched before one is read.

use memreport::__private::{ExpectedBlock, prefetch};

use super::leaf::Node;
use super::{Blocks, Granule, TOP_SHIFT};
use crate::mem::sync::Ordering::Acquire;
use crate::mem::sys;
use crate::table::packed_block::PackedBlock;

impl Blocks {
    /// Finds the words of these blocks, and prefetches them.
    #[inline(always)]
    pub(crate) fn prefetch_expected(&self, granule: Granule, mut blocks: &[ExpectedBlock]) {
        while let Some(first) = blocks.first() {
            let place = Place::of(granule, first);
            let Some(node) = self.node_of(granule, first) else {
                first.set_word(None);
                blocks = &blocks[1..];
                continue;
            };
            let mut found = 0;
            // Mostly all of them.
            for block in blocks.iter().take_while(|block| Place::of(granule, block) == place) {
                let start = sys::untagged(block.start.get().addr());
                let word = node.leaf(granule, start).map(|leaf| leaf.word(granule, start));
                block.set_word(word);
                prefetch(word.map_or(std::ptr::null(), std::ptr::from_ref).cast());
                found += 1;
            }
            blocks = &blocks[found..];
        }
    }

    /// Returns the node for a block; `None` if no block can start there, or the node is not mapped.
    #[inline(always)]
    fn node_of(&self, granule: Granule, block: &ExpectedBlock) -> Option<&'static Node> {
        let start = sys::untagged(block.start.get().addr());
        let node = self.top.get(start >> TOP_SHIFT).filter(|_| granule.is_start(start))?;
        node.get(1)?.first()
    }

    /// Returns the usable bytes of a block whose word
    /// [`prefetch_expected`](Self::prefetch_expected) has found, as
    /// [`find_small`](Self::find_small) does.
    #[inline(always)]
    pub(crate) fn find_expected(granule: Granule, block: &ExpectedBlock) -> Option<usize> {
        // Acquire, with the Release in `store_word`.
        let word = block.word.get().load(Acquire);
        let half = granule.is_second_half(block.start.get().addr());
        PackedBlock::match_small(word, block.size.get(), half).map(|small| small.usable)
    }
}

/// The bits of a block's address that choose its node, and those that are 0 if a block can start
/// there: one comparison for both.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place(usize);

impl Place {
    #[inline(always)]
    fn of(granule: Granule, block: &ExpectedBlock) -> Self {
        let chosen_within = (1 << TOP_SHIFT) - granule.align();
        Place(sys::untagged(block.start.get().addr()) & !chosen_within)
    }
}

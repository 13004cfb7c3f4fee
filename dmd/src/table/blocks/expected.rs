//! Looks up blocks in batches: the words of a later batch are prefetched before one is read.

use memreport::__private::{ExpectedBlock, prefetch};

use super::{Blocks, Granule};
use crate::mem::sync::Ordering::Acquire;
use crate::table::packed_block::{PackedBlock, SmallBlock};

impl Blocks {
    /// Finds the words of these blocks, and prefetches them.
    #[inline(always)]
    pub(crate) fn prefetch_expected(&self, granule: Granule, blocks: &[ExpectedBlock]) {
        for block in blocks {
            let word = self.word(granule, block.start.get());
            block.word.set(word);
            prefetch(word.map_or(std::ptr::null(), std::ptr::from_ref).cast());
        }
    }

    /// Returns a block whose word [`prefetch_expected`](Self::prefetch_expected) has found, as
    /// [`find_small`](Self::find_small) does.
    #[inline(always)]
    pub(crate) fn find_expected(granule: Granule, block: &ExpectedBlock) -> Option<SmallBlock> {
        // Acquire, with the Release in `store_word`.
        let word = block.word.get()?.load(Acquire);
        let half = granule.is_second_half(block.start.get());
        PackedBlock::match_small(word, block.size.get(), half)
    }
}

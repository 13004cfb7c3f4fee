//! Finds the block that contains an address, from the words before the address.

use super::leaf::{LEAF_BITS, MappedLeaf, SPAN_BITS, WORDS_PER_PAGE, word_index};
use super::{Blocks, Granule, LiveBlock};
use crate::mem::sync::AtomicU64;
use crate::mem::sync::Ordering::{Acquire, Relaxed};
use crate::mem::sys;
use crate::table::packed_block::PackedBlock;

/// The number of words that are skipped together if all are empty. Blocks that were allocated
/// before tracking have no words, so there may be many.
const GROUP: usize = 8;

impl Blocks {
    /// Returns the block that contains this address.
    pub(crate) fn enclosing(&self, granule: Granule, address: usize) -> Option<LiveBlock> {
        let address = sys::untagged(address);
        let starting_at = |start| {
            let found = self.starting_at(granule, start)?;
            (start..start + found.block.usable).contains(&address).then_some(found)
        };
        let in_span = self.leaf(granule, address).and_then(|leaf| {
            let nearest = Self::nearest(granule, leaf, address, PackedBlock::from_word);
            nearest.or_else(|| {
                let overlapping = usize::try_from(leaf.overlap(address)).ok()?;
                (overlapping != 0).then_some(overlapping)
            })
        });
        in_span
            .and_then(starting_at)
            .or_else(|| self.sampled_around(address).find_map(starting_at))
            .or_else(|| self.huge.iter().find_map(starting_at))
    }

    /// Returns the start of the last block in the address's span that starts at or before
    /// `address`. `decode` decides which words count as blocks.
    pub(super) fn nearest(
        granule: Granule,
        leaf: MappedLeaf,
        address: usize,
        decode: impl Fn(u64) -> Option<PackedBlock>,
    ) -> Option<usize> {
        let last = word_index(granule, address);
        let first_page = word_index(granule, address >> SPAN_BITS << SPAN_BITS) / WORDS_PER_PAGE;
        let first_granule = address >> LEAF_BITS << (LEAF_BITS - granule.shift);
        let mut page = last / WORDS_PER_PAGE;
        let mut end = last + 1;
        loop {
            let first = page * WORDS_PER_PAGE;
            let mut rest =
                if leaf.is_touched(granule, first) { &leaf.words[first..end] } else { &[][..] };
            while let Some((word, before)) = rest.split_last() {
                // Acquire, with the Release in `MappedLeaf::store_word`.
                if let Some(packed) = decode(word.load(Acquire)) {
                    let index = first_granule + first + before.len();
                    let start = granule.start(index, packed.is_second_half());
                    if start <= address {
                        return Some(start);
                    }
                }
                rest = without_empty_end(before);
            }
            if page == first_page {
                return None;
            }
            end = first;
            page -= 1;
        }
    }
}

/// Leaves out empty words at the end, in whole groups.
fn without_empty_end(words: &[AtomicU64]) -> &[AtomicU64] {
    let is_empty =
        |words: &&[AtomicU64]| words.iter().fold(0, |all, word| all | word.load(Relaxed)) == 0;
    let groups = words.rchunks_exact(GROUP).take_while(is_empty).count();
    &words[..words.len() - GROUP * groups]
}

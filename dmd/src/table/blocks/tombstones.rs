//! What is left in the table of blocks that are not entered: one was given back, another lives and is not in the sample. Without
//! it, neither could be told from memory that was never tracked.

use super::{Blocks, Granule, HEADER, place};
use crate::mem::sync::AtomicU64;
use crate::mem::sync::Ordering::{Acquire, Relaxed, Release};
use crate::mem::sync::load_own;
use crate::table::packed_block::{Block, PackedBlock, Sizes, Tombstone};

impl Blocks {
    /// As [`remove`](Self::remove), but it can be told that there was a block until another one comes.
    pub(crate) fn remove_leaving_tombstone(
        &self,
        granule: Granule,
        address: usize,
    ) -> Option<Block> {
        let removed = self.remove_with(granule, address, |block, is_second_half| {
            PackedBlock::shortened(block, is_second_half).trace_word(Tombstone::Freed)
        });
        if removed.is_none()
            && let Some(word) = self.word(granule, address)
            && let Some((packed, Tombstone::Unsampled)) = PackedBlock::trace(load_own(word))
        {
            // Release, as in `remove`.
            word.store(packed.trace_word(Tombstone::Freed), Release);
        }
        removed
    }

    /// A block that the allocator has just handed out is not entered: no trace must be taken for it. Where no block was ever
    /// entered, there is none.
    pub(crate) fn mark_unsampled(&self, granule: Granule, address: usize, block: Block) {
        if self.may_hold(granule, address)
            && let Some(word) = self.word(granule, address)
        {
            let packed = PackedBlock::shortened(block, granule.is_second_half(address));
            // Release, as in `enter`.
            word.store(packed.trace_word(Tombstone::Unsampled), Release);
        }
    }

    fn word(&self, granule: Granule, address: usize) -> Option<&'static AtomicU64> {
        self.leaf(granule, address)?.get(HEADER + place(granule, address))
    }

    /// Forgets what was left of blocks that are not entered.
    pub(crate) fn clear_tombstones(&self, granule: Granule) {
        self.for_each_word(granule, |_, word| {
            let seen = word.load(Relaxed);
            if PackedBlock::trace(seen).is_some() {
                // Whoever has got the memory meanwhile has its own word there, which stays.
                let _ = word.compare_exchange(seen, 0, Relaxed, Relaxed);
            }
        });
    }

    /// What is known of the block that held this address and is not entered.
    pub(crate) fn trace_of(&self, granule: Granule, address: usize) -> Option<Tombstone> {
        let words = self.leaf(granule, address)?;
        let any = |word| {
            PackedBlock::from_word(word)
                .or_else(|| PackedBlock::trace(word).map(|(packed, _)| packed))
        };
        let (start, _) = self.nearest(granule, words, address, any)?;
        // Looked at once more: a block may be entered there by now.
        let (packed, trace) = PackedBlock::trace(self.word(granule, start)?.load(Acquire))?;
        match packed.sizes() {
            Sizes::Here { usable, .. } if address < start + usable => Some(trace),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::table::epoch::Epoch;
    use crate::table::packed_block::SiteId;

    const GLIBC: Granule = Granule::of_spacing(32);

    fn block(requested: usize, usable: usize) -> Block {
        let (site, epoch) = (SiteId::UNKNOWN, Epoch::FIRST);
        Block { requested, usable, site, epoch, rate: SamplingRate::EVERY, time: 0 }
    }

    fn all(blocks: &Blocks) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        blocks.for_each(GLIBC, |address, block, _| found.push((address, block.requested)));
        found
    }

    #[test]
    fn a_block_that_leaves_a_trace_is_known_to_have_been_given_back() {
        let blocks = Box::new(Blocks::new());
        let was = |address| blocks.trace_of(GLIBC, address) == Some(Tombstone::Freed);
        for (address, size) in [(0x1000, 100), (0x2000, 100), (0x30_0000, 10 << 20)] {
            blocks.insert(GLIBC, address, block(size, size + 8));
        }
        assert!(!was(0x1000));
        blocks.remove_leaving_tombstone(GLIBC, 0x1000);
        blocks.remove(GLIBC, 0x2000);
        blocks.remove_leaving_tombstone(GLIBC, 0x30_0000);
        let table = [(0x1000, true), (0x1000 + 107, true), (0x1000 + 108, false), (0x2000, false)];
        for (address, expected) in table.into_iter().chain([(0x30_0000 + 1000, true)]) {
            assert_eq!(was(address), expected, "{address:x}");
        }
        assert_eq!(all(&blocks), []);
        blocks.mark_unsampled(GLIBC, 0x1040, block(8, 24));
        assert_eq!(blocks.trace_of(GLIBC, 0x1040), Some(Tombstone::Unsampled));
        assert!(blocks.remove_leaving_tombstone(GLIBC, 0x1040).is_none() && was(0x1040));
        blocks.insert(GLIBC, 0x1000, block(8, 24));
        assert!(!was(0x1000) && was(0x1040));
        blocks.clear_tombstones(GLIBC);
        assert!(!was(0x1040));
        assert_eq!(all(&blocks), [(0x1000, 8)]);
    }
}

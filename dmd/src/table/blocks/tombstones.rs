//! Tombstones in the table: words that mark addresses of freed and of unsampled blocks.
//!
//! While single allocations are observed, a look-up must tell a freed block from an unsampled one
//! and from memory that was never tracked. A tombstone stays until the next block at its address.

use super::{Blocks, Granule};
use crate::mem::sync::Ordering::{Acquire, Relaxed, Release};
use crate::mem::sync::load_own;
use crate::table::packed_block::{Block, PackedBlock, Sizes, Tombstone};

impl Blocks {
    /// Removes a block, and leaves a tombstone that marks it as freed.
    pub(crate) fn remove_leaving_tombstone(
        &self,
        granule: Granule,
        address: usize,
    ) -> Option<Block> {
        let freed = |block, is_second_half| {
            PackedBlock::clamped(block, is_second_half).tombstone_word(Tombstone::Freed)
        };
        let removed = self.remove_with(granule, address, freed);
        if removed.is_none()
            && let Some(word) = self.word(granule, address)
            && let Some((packed, Tombstone::Unsampled)) = PackedBlock::tombstone(load_own(word))
        {
            // Release, with the Acquire in `tombstone_at`.
            word.store(packed.tombstone_word(Tombstone::Freed), Release);
        }
        removed.or_else(|| {
            let block = self.remove_sampled(address)?;
            if let Some(leaf) = self.leaf_or_alloc(granule, address) {
                let word = freed(block, granule.is_second_half(address));
                leaf.store_word(granule, address, word);
            }
            Some(block)
        })
    }

    /// Marks a new block that is not inserted as unsampled. Otherwise an older tombstone could be
    /// taken for it. Pages without any block need no mark.
    pub(crate) fn mark_unsampled(&self, granule: Granule, address: usize, block: Block) {
        if self.may_hold_in_tree(granule, address)
            && let Some(word) = self.word(granule, address)
        {
            let packed = PackedBlock::clamped(block, granule.is_second_half(address));
            // Release, with the Acquire in `tombstone_at`.
            word.store(packed.tombstone_word(Tombstone::Unsampled), Release);
        }
    }

    /// Clears all tombstones.
    pub(crate) fn clear_tombstones(&self, granule: Granule) {
        self.for_each_word(granule, |_, word| {
            let seen = word.load(Relaxed);
            if PackedBlock::tombstone(seen).is_some() {
                // It fails if a new block was inserted meanwhile, whose word then stays.
                let _ = word.compare_exchange(seen, 0, Relaxed, Relaxed);
            }
        });
    }

    /// Returns the tombstone of the block that contained this address.
    pub(crate) fn tombstone_at(&self, granule: Granule, address: usize) -> Option<Tombstone> {
        let leaf = self.leaf(granule, address)?;
        let decode = |word| {
            PackedBlock::from_word(word)
                .or_else(|| PackedBlock::tombstone(word).map(|(packed, _)| packed))
        };
        let start = Self::nearest(granule, leaf, address, decode)?;
        // Read again: a block may have been inserted there. Acquire, with the Release of the stores
        // above.
        let (packed, tombstone) = PackedBlock::tombstone(self.word(granule, start)?.load(Acquire))?;
        match packed.sizes() {
            Sizes::Inline { usable, .. } if address < start + usable => Some(tombstone),
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

    const GLIBC: Granule = Granule::OF_32;

    fn block(requested: usize, usable: usize) -> Block {
        let (site, epoch) = (SiteId::UNKNOWN, Epoch::FIRST);
        Block { requested, usable, site, epoch, rate: SamplingRate::EVERY, time: 0 }
    }

    fn all(blocks: &Blocks) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        blocks.for_each(GLIBC, |live| found.push((live.start, live.block.requested)));
        found
    }

    #[test]
    fn a_tombstone_tells_freed_from_unsampled_until_the_next_block() {
        let blocks = Box::new(Blocks::new());
        // Miri visits every word of a block at each step.
        let large = if cfg!(miri) { 100 << 10 } else { 10 << 20 };
        let is_freed = |address| blocks.tombstone_at(GLIBC, address) == Some(Tombstone::Freed);
        for (address, size) in [(0x1000, 100), (0x2000, 100), (0x30_0000, large)] {
            blocks.insert(GLIBC, address, block(size, size + 8));
        }
        assert!(!is_freed(0x1000));
        blocks.remove_leaving_tombstone(GLIBC, 0x1000);
        blocks.remove(GLIBC, 0x2000);
        blocks.remove_leaving_tombstone(GLIBC, 0x30_0000);
        let table = [(0x1000, true), (0x1000 + 107, true), (0x1000 + 108, false), (0x2000, false)];
        for (address, expected) in table.into_iter().chain([(0x30_0000 + 1000, true)]) {
            assert_eq!(is_freed(address), expected, "{address:x}");
        }
        assert_eq!(all(&blocks), []);
        blocks.mark_unsampled(GLIBC, 0x1040, block(8, 24));
        assert_eq!(blocks.tombstone_at(GLIBC, 0x1040), Some(Tombstone::Unsampled));
        assert!(blocks.remove_leaving_tombstone(GLIBC, 0x1040).is_none() && is_freed(0x1040));
        blocks.insert(GLIBC, 0x1000, block(8, 24));
        assert!(!is_freed(0x1000) && is_freed(0x1040));
        blocks.clear_tombstones(GLIBC);
        assert!(!is_freed(0x1040));
        assert_eq!(all(&blocks), [(0x1000, 8)]);
    }
}

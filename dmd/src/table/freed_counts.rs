//! Counts of freed blocks, grouped by site and sizes: for `--mode=cumulative`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::packed_block::Block;
use crate::mem::concurrent_vec::ConcurrentVec;
use crate::mem::interner::Interner;
use crate::table::packed_block::SiteId;

/// Counts of freed blocks by kind. Kinds are never removed.
pub(crate) struct FreedCounts {
    /// The interned kinds: pairs of site with requested bytes, and usable bytes.
    kinds: Interner,
    /// The counts, by the number of the kind.
    counts: ConcurrentVec<AtomicU64>,
    /// The number of blocks that were not counted because memory was short.
    lost: AtomicUsize,
}

/// A kind of freed blocks, with their count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreedKind {
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) site: SiteId,
    pub(crate) count: u64,
}

const REQUESTED_BITS: u32 = 40;

impl FreedCounts {
    pub(crate) const fn new() -> Self {
        FreedCounts {
            kinds: Interner::new(1 << 26),
            counts: ConcurrentVec::new(),
            lost: AtomicUsize::new(0),
        }
    }

    /// Counts a freed block.
    #[inline]
    pub(crate) fn count(&self, block: Block) {
        let requested = (block.requested as u64).min((1 << REQUESTED_BITS) - 1);
        let kind = u64::from(block.site.number()) << REQUESTED_BITS | requested;
        let number = self.kinds.intern((kind, block.usable as u64));
        match self.counts.get_or_alloc(number as usize).filter(|_| number != 0) {
            Some(count) => {
                count.fetch_add(1, Relaxed);
            }
            None => {
                self.lost.fetch_add(1, Relaxed);
            }
        }
    }

    /// Returns all kinds with their counts.
    #[expect(clippy::cast_possible_truncation, reason = "sizes went in as usize")]
    pub(crate) fn kinds(&self) -> impl Iterator<Item = FreedKind> {
        (1..=self.kinds.len()).filter_map(|number| {
            let (kind, usable) = self.kinds.get(number as u32)?;
            let count = self.counts.get(number)?.load(Relaxed);
            (count != 0).then_some(FreedKind {
                requested: (kind & ((1 << REQUESTED_BITS) - 1)) as usize,
                usable: usable as usize,
                site: SiteId::from_number((kind >> REQUESTED_BITS) as u32),
                count,
            })
        })
    }

    /// Returns the number of blocks that were not counted.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::table::epoch::Epoch;

    #[test]
    fn blocks_of_a_kind_are_counted_together() {
        let freed = FreedCounts::new();
        let block = |requested, site| Block {
            requested,
            usable: requested + 8,
            site: SiteId::from_number(site),
            epoch: Epoch::FIRST,
            rate: SamplingRate::EVERY,
            time: 0,
        };
        for (requested, site, times) in [(16, 1, 3), (16, 2, 1), (1 << 30, 1, 2), (16, 1, 4)] {
            for _ in 0..times {
                freed.count(block(requested, site));
            }
        }
        let kinds: Vec<_> =
            freed.kinds().map(|kind| (kind.requested, kind.site.number(), kind.count)).collect();
        assert_eq!(kinds, [(16, 1, 7), (16, 2, 1), (1 << 30, 1, 2)]);
        assert_eq!(freed.lost(), 0);
    }
}

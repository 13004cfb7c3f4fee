//! One pass over all live blocks, in the order of their addresses, merged with the sorted claims.

use std::io;

use memreport::__private::OWN;
use memreport::{HeapCounters, heap_counters};

use super::balance::Balance;
use super::claims::ClaimLog;
use super::claims::words::{ClaimWords, address_of};
use super::findings::Scanned;
use super::groups::ReportSet;
use super::holders::reached::Reached;
use super::holders::{HolderId, Holders, HoldersByAddress};
use super::restriction::Restriction;
use super::scan::list::ScannedBlock;
use super::scan::{Frozen, FrozenBlock};
use super::summary::Sum;
use crate::sample::plan::WholePlan;
use crate::stack::site;
use crate::table::BLOCKS;
use crate::table::blocks::{Granule, LiveBlock};
use crate::table::epoch::Epoch;
use crate::table::packed_block::{Block, PackedBlock};

/// A pass over all blocks. Nothing is allocated between the first block and the last.
pub(super) struct HeapPass<'c> {
    granule: Granule,
    /// The epoch of blocks that are allocated during the collection.
    epoch: Epoch,
    pub(super) balance: Balance<'c>,
    pub(super) sums: PassSums,
    /// The single blocks, in mode `scan`.
    pub(super) scanned: Option<Scanned>,
    /// Claims of addresses that the pass has not reached yet.
    unread: &'c [ClaimWords],
    /// Holders of blocks that the pass has not reached yet.
    held: HoldersByAddress<'c>,
    /// The blocks that count, if not all do.
    restriction: Option<Restriction>,
}

/// The sums of a pass that are not in the balance.
#[derive(Clone, Copy, Default)]
pub(super) struct PassSums {
    /// The allocator's counters at the beginning of the pass and at its end. Other threads go on
    /// meanwhile. `None` for a frozen copy, which has all blocks of one instant.
    counters: Option<[HeapCounters; 2]>,
    pub(super) allocated_during: Sum,
    pub(super) trackers_own: Sum,
    /// The tracker's own blocks from before the collection, which are in `trackers_own` too.
    pub(super) own_before: Sum,
}

impl PassSums {
    /// Returns the bytes of the blocks that were allocated before the collection, of which the pass
    /// has found `found` bytes.
    ///
    /// Threads that replace blocks during the pass change both the table and the counters, but each
    /// block was either found or not: the sum of those is right. The counters limit it, from all
    /// blocks that lived throughout the pass to all that lived at any time of it. So it is exactly
    /// the counters' where no thread goes on. A frozen copy needs no limit.
    pub(super) fn heap_of(&self, found: usize) -> usize {
        let Some([before, after]) = self.counters else { return found };
        let left_out = self.allocated_during.bytes.saturating_add(self.trackers_own.bytes);
        let bytes = |allocated: u64, freed: u64| {
            usize::try_from(allocated.saturating_sub(freed)).unwrap_or(usize::MAX)
        };
        let least = bytes(before.allocated_bytes, after.freed_bytes);
        let most = bytes(after.allocated_bytes, before.freed_bytes).max(least);
        found.saturating_add(left_out).clamp(least, most).saturating_sub(left_out)
    }
}

/// The reports of a block, and its holder if it has none.
struct Attribution {
    reports: ReportSet,
    holder: HolderId,
}

impl<'c> HeapPass<'c> {
    pub(super) fn new(
        granule: Granule,
        epoch: Epoch,
        plan: WholePlan,
        claim_log: &'c ClaimLog,
        (holders, reached): (&'c Holders, &'c Reached),
    ) -> Self {
        HeapPass {
            granule,
            epoch,
            balance: Balance::new(granule, plan, claim_log, reached),
            sums: PassSums::default(),
            scanned: None,
            unread: claim_log.sorted(),
            held: holders.by_address(),
            restriction: Restriction::current(),
        }
    }

    /// Counts the blocks of the table.
    pub(super) fn over_table(mut self) -> Self {
        let before = heap_counters().unwrap_or_default();
        BLOCKS.for_each(self.granule, |LiveBlock { start, block, packed }| {
            self.visit(FrozenBlock { address: start, packed, block, contents: None });
        });
        self.sums.counters = Some([before, heap_counters().unwrap_or_default()]);
        self.add_unmatched_claims(self.unread);
        self
    }

    /// Counts the blocks of a frozen copy of the heap, whose contents stay in a file.
    pub(super) fn over_frozen_copy(mut self) -> io::Result<Self> {
        let frozen = Frozen::take(&BLOCKS, self.granule)?;
        self.scanned = Some(Scanned::empty());
        frozen.for_each(|block| self.visit(block))?;
        self.add_unmatched_claims(self.unread);
        if let Some(scanned) = &mut self.scanned {
            scanned.file = Some(frozen.file);
        }
        Ok(self)
    }

    fn visit(&mut self, FrozenBlock { address, packed, block, contents }: FrozenBlock) {
        let Some(attribution) = self.attribute(address, block, packed) else { return };
        let Attribution { reports, holder } = attribution;
        let group = self.balance.group(block, reports, holder);
        if let (Some(scanned), Some(group)) = (&mut self.scanned, group) {
            scanned.blocks.push(ScannedBlock { address, group, contents });
        }
    }

    /// Adds a block to the balance. Returns `None` for blocks that the collection leaves out: those
    /// allocated during it, and the tracker's own.
    fn attribute(
        &mut self,
        address: usize,
        block: Block,
        packed: PackedBlock,
    ) -> Option<Attribution> {
        let before = self.unread.iter().take_while(|claim| address_of(claim) < address).count();
        let (unmatched, rest) = self.unread.split_at(before);
        let of_block = rest.iter().take_while(|claim| address_of(claim) == address).count();
        let (claims, rest) = rest.split_at(of_block);
        self.unread = rest;
        self.add_unmatched_claims(unmatched);
        let site = site::site(block.site);
        let thread = site.map(|site| site.thread);
        if self.restriction.as_ref().is_some_and(|only| !only.counts(address, block, thread)) {
            return None;
        }
        let is_trackers_own = site.is_some_and(|site| u32::from(site.on_alloc) == OWN);
        if block.epoch == self.epoch || is_trackers_own {
            let sums = &mut self.sums;
            let sum =
                if is_trackers_own { &mut sums.trackers_own } else { &mut sums.allocated_during };
            sum.add(block.usable);
            if is_trackers_own && block.epoch != self.epoch {
                sums.own_before.add(block.usable);
            }
            self.balance.add_claims_left_out(claims);
            return None;
        }
        let reports = self.balance.add(LiveBlock { start: address, block, packed }, site, claims);
        let holder = match reports {
            ReportSet::NONE => self.held.holder_of(address, packed),
            _ => HolderId::default(),
        };
        Some(Attribution { reports, holder })
    }

    /// Adds claims that match no block. Under a restriction, only those inside a counted block.
    fn add_unmatched_claims(&mut self, claims: &[ClaimWords]) {
        let Some(only) = &self.restriction else {
            return self.balance.add_unmatched_claims(claims);
        };
        for claim in claims.iter().filter(|claim| only.is_inside(address_of(claim))) {
            self.balance.add_unmatched_claims(std::slice::from_ref(claim));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(allocated_bytes: u64, freed_bytes: u64) -> HeapCounters {
        HeapCounters { allocated_bytes, freed_bytes, ..HeapCounters::default() }
    }

    fn sums(before: HeapCounters, after: HeapCounters, allocated_during: usize) -> PassSums {
        let allocated_during = Sum { blocks: 1, bytes: allocated_during };
        let trackers_own = Sum { blocks: 1, bytes: 10 };
        let counters = Some([before, after]);
        PassSums { counters, allocated_during, trackers_own, own_before: Sum::default() }
    }

    #[test]
    fn blocks_that_are_replaced_during_the_pass_are_in_neither_sum() {
        // Of 73,000 bytes, 5,000 are replaced at addresses that the pass has still to reach: the
        // counters at its beginning less the new blocks would be 63,000.
        let before = counters(73_010, 0);
        let after = counters(78_010, 5000);
        assert_eq!(sums(before, after, 5000).heap_of(68_000), 68_000);
        // And at addresses that it has passed.
        assert_eq!(sums(before, after, 0).heap_of(73_000), 73_000);
        assert_eq!(sums(before, after, 5000).heap_of(73_000), 73_000);
    }

    #[test]
    fn while_no_thread_goes_on_the_heap_is_what_the_counters_say() {
        let still = counters(73_010, 10);
        for found in [0, 71_000, 80_000] {
            assert_eq!(sums(still, still, 1000).heap_of(found), 71_990);
            // A block that a thread is about to insert is in the counters, and not in the copy.
            let frozen = PassSums { counters: None, ..sums(still, still, 1000) };
            assert_eq!(frozen.heap_of(found), found);
        }
    }
}

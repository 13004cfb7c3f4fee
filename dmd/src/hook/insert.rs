//! Inserts new blocks into the table, as the plan says, and removes freed ones.

use memreport::UsableSize;

use super::allocator::Dmd;
use crate::event::events::{Event, record};
use crate::event::observers;
use crate::mem::sys;
use crate::sample::plan::{Insertion, Plan, plan};
use crate::sample::rate::SamplingRate;
use crate::stack::site::{self, NewBlock, ObservedBlock};
use crate::table::blocks::Granule;
use crate::table::epoch::epoch;
use crate::table::packed_block::{Block, SiteId};
use crate::table::{BLOCKS, FREED, SAMPLED};

impl<A: UsableSize> Dmd<A> {
    /// The granule of the table: a constant of the inner allocator.
    pub(super) const GRANULE: Granule = Granule::of_spacing(A::SPACING);

    /// Handles a new block of a thread that has reached its stop: inserts it, if blocks are sampled
    /// and this one is, and sets the next stop.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_at_stop(plan: Plan, address: *mut u8, requested: usize, usable: usize) {
        if plan.samples() && site::is_sampled(usable) {
            match plan.insertion() {
                Insertion::Timed => Self::insert_timed(plan, address.addr(), requested, usable),
                _ => _ = Self::insert_with_site(plan, address, requested, usable),
            }
        }
        site::set_stop(plan);
    }

    /// Inserts a block in the way that the plan names, and returns it.
    #[inline(always)]
    pub(super) fn insert(plan: Plan, address: *mut u8, requested: usize, usable: usize) -> *mut u8 {
        match plan.insertion() {
            Insertion::WithoutStack => {
                if let Some(site) = site::cached_without_stack() {
                    let (epoch, rate) = (epoch(), SamplingRate::EVERY);
                    let block = Block { requested, usable, site, epoch, rate, time: 0 };
                    if BLOCKS.insert_small(Self::GRANULE, address.addr(), block) {
                        return address;
                    }
                }
                Self::insert_with_site(plan, address, requested, usable)
            }
            Insertion::WithSite => Self::insert_with_site(plan, address, requested, usable),
            _ => Self::insert_rarely(plan, address, requested, usable),
        }
    }

    /// Inserts a block in one of the less usual ways, and returns it.
    #[cold]
    #[inline(never)]
    fn insert_rarely(plan: Plan, address: *mut u8, requested: usize, usable: usize) -> *mut u8 {
        match plan.insertion() {
            Insertion::WithoutStack | Insertion::WithSite | Insertion::Nothing => {}
            Insertion::Timed => Self::insert_timed(plan, address.addr(), requested, usable),
            Insertion::Observed => Self::insert_observed(plan, address.addr(), requested, usable),
        }
        address
    }

    /// Inserts a block with its site, and its stack if the plan has stacks, and returns it.
    #[inline(never)]
    fn insert_with_site(plan: Plan, address: *mut u8, requested: usize, usable: usize) -> *mut u8 {
        let NewBlock { site, rate } = site::of_new_block(plan, usable);
        let block = Block { requested, usable, site, epoch: epoch(), rate, time: 0 };
        if plan.is_filtered() {
            SAMPLED.add(address.addr());
        }
        if !BLOCKS.insert_small(Self::GRANULE, address.addr(), block) {
            BLOCKS.insert(Self::GRANULE, address.addr(), block);
        }
        Self::record_allocated(plan, address.addr(), block);
        address
    }

    /// Inserts a block with its site and the time.
    #[cold]
    #[inline(never)]
    fn insert_timed(plan: Plan, address: usize, requested: usize, usable: usize) {
        let NewBlock { site, rate } = site::of_new_block_cold(plan, usable);
        let (epoch, time) = (epoch(), sys::monotonic());
        let block = Block { requested, usable, site, epoch, rate, time };
        Self::insert_and_record(plan, address, block);
    }

    /// Inserts a block, with an event if events are written.
    pub(super) fn insert_and_record(plan: Plan, address: usize, block: Block) {
        if plan.is_filtered() {
            SAMPLED.add(address);
        }
        BLOCKS.insert(Self::GRANULE, address, block);
        Self::record_allocated(plan, address, block);
    }

    /// Records the event of a new block, if events are written.
    #[inline(always)]
    fn record_allocated(plan: Plan, address: usize, block: Block) {
        if plan.writes_events() {
            record(Event::Allocated { address, block });
        }
    }

    /// Inserts and logs a block while single allocations are observed, or marks it as unsampled.
    #[cold]
    #[inline(never)]
    fn insert_observed(plan: Plan, address: usize, requested: usize, usable: usize) {
        let observed = site::of_observed_block(plan, usable);
        let (site, rate) = observed.map_or((SiteId::UNKNOWN, SamplingRate::EVERY), |observed| {
            (observed.site, observed.rate)
        });
        let (epoch, time) = (epoch(), sys::monotonic());
        let block = Block { requested, usable, site, epoch, rate, time };
        let Some(ObservedBlock { logged_by, .. }) = observed else {
            return BLOCKS.mark_unsampled(Self::GRANULE, address, block);
        };
        Self::insert_and_record(plan, address, block);
        if let Some(thread) = logged_by {
            observers::log(address, block, thread);
        }
    }

    /// Removes a block from the table, with an event if events are written.
    pub(super) fn remove(address: usize) -> Option<Block> {
        let block = if plan().is_observed() {
            BLOCKS.remove_leaving_tombstone(Self::GRANULE, address)
        } else {
            BLOCKS.remove(Self::GRANULE, address)
        }?;
        let plan = plan();
        if plan.is_filtered() {
            SAMPLED.remove(address);
        }
        if plan.writes_events() {
            let freed_at = if plan.has_free_stacks() { site::of_free() } else { SiteId::UNKNOWN };
            record(Event::Freed { address, block, freed_at });
        }
        Some(block)
    }

    /// Counts a freed block, in modes that keep such counts.
    pub(super) fn count_freed(removed: Option<Block>) {
        if let Some(block) = removed.filter(|_| plan().counts_freed()) {
            FREED.count(block);
        }
    }
}

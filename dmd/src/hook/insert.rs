//! Inserts new blocks into the table, as the plan says, and removes freed ones.

use memreport::__private::{ThreadSlot, allocated as count_allocated};
use memreport::UsableSize;

use super::allocator::Dmd;
use crate::event::events::{Event, record};
use crate::event::observers;
use crate::mem::sys;
use crate::sample::plan::{self, Insertion, Plan, plan};
use crate::sample::rate::SamplingRate;
use crate::stack::site::{self, NewBlock, ObservedBlock};
use crate::table::blocks::Granule;
use crate::table::epoch::{Epoch, epoch};
use crate::table::packed_block::{Block, PackedBlock, SiteId};
use crate::table::{BLOCKS, FREED};

impl<A: UsableSize> Dmd<A> {
    /// The granule of the table: a constant of the inner allocator.
    pub(super) const GRANULE: Granule = Granule::of::<A>();

    /// Counts a new block, inserts it into the table, depending on the plan, and returns it.
    #[inline(never)]
    pub(super) fn on_alloc(
        address: *mut u8,
        requested: usize,
        usable: usize,
        slot: ThreadSlot,
    ) -> *mut u8 {
        let plan = plan();
        let Some(word) = site::prepared_word(plan, slot) else {
            return Self::on_alloc_unprepared(address, requested, usable, plan);
        };
        slot.count_allocated(usable);
        if BLOCKS.insert_prepared(Self::GRANULE, address.addr(), (requested, usable), word) {
            return address;
        }
        Self::insert_with_site(address, requested, usable, plan)
    }

    /// Counts and inserts a new block as [`on_alloc`](Self::on_alloc) does, if sizes are prepared
    /// but this one took a query. The hook that frees the block queries it again, and so looks at
    /// its word: the table stays complete, wherever the sizes are.
    #[cold]
    #[inline(never)]
    pub(super) fn on_alloc_queried(address: *mut u8, requested: usize, usable: usize) -> *mut u8 {
        Self::on_alloc_unprepared(address, requested, usable, plan().without_complete())
    }

    /// Counts and inserts a new block as [`on_alloc`](Self::on_alloc) does, in any mode.
    #[inline(never)]
    fn on_alloc_unprepared(
        address: *mut u8,
        requested: usize,
        usable: usize,
        plan: Plan,
    ) -> *mut u8 {
        if plan.inserts_each_with_site()
            && let Some(slot) = ThreadSlot::current()
        {
            slot.count_allocated(usable);
            return Self::insert_with_site(address, requested, usable, plan);
        }
        Self::on_alloc_rarely(address, requested, usable, plan)
    }

    /// Counts and inserts a new block as [`on_alloc`](Self::on_alloc) does, in the less usual
    /// modes.
    #[inline(never)]
    fn on_alloc_rarely(address: *mut u8, requested: usize, usable: usize, plan: Plan) -> *mut u8 {
        if !plan.has_stops() {
            count_allocated(usable);
            return Self::insert(address, requested, usable, plan);
        }
        if !ThreadSlot::current_or_stopped().counts_before_stop(usable) {
            count_allocated(usable);
            Self::insert_at_stop(plan, address, requested, usable);
        }
        address
    }

    /// Handles a new block of a thread that has reached its stop: inserts it, if blocks are sampled
    /// and this one is, and sets the next stop.
    #[cold]
    #[inline(never)]
    fn insert_at_stop(plan: Plan, address: *mut u8, requested: usize, usable: usize) {
        if plan.samples() && site::is_sampled(usable) {
            match plan.insertion() {
                Insertion::Timed => Self::insert_timed(plan, address.addr(), requested, usable),
                _ => _ = Self::insert_with_site(address, requested, usable, plan),
            }
        }
        site::set_stop(plan);
    }

    /// Inserts a block in the way that the plan names, and returns it.
    #[inline(always)]
    fn insert(address: *mut u8, requested: usize, usable: usize, plan: Plan) -> *mut u8 {
        match plan.insertion() {
            Insertion::WithoutStack | Insertion::WithSite => {
                Self::insert_with_site(address, requested, usable, plan)
            }
            _ => Self::insert_rarely(address, requested, usable, plan),
        }
    }

    /// Inserts a block in one of the less usual ways, and returns it.
    #[cold]
    #[inline(never)]
    fn insert_rarely(address: *mut u8, requested: usize, usable: usize, plan: Plan) -> *mut u8 {
        match plan.insertion() {
            Insertion::WithoutStack | Insertion::WithSite | Insertion::Nothing => {}
            Insertion::Timed => Self::insert_timed(plan, address.addr(), requested, usable),
            Insertion::Observed => Self::insert_observed(plan, address.addr(), requested, usable),
        }
        sys::opaque(address)
    }

    /// Inserts a block with its site, and its stack if the plan has stacks, and returns it.
    #[inline(never)]
    fn insert_with_site(address: *mut u8, requested: usize, usable: usize, plan: Plan) -> *mut u8 {
        let new = site::of_new_block(plan, usable);
        if plan.inserts_simply() {
            let epoch = Epoch::from_number(plan.epoch());
            let word = PackedBlock::without_sizes(new.site, epoch);
            let sizes = (requested, usable);
            if BLOCKS.insert_prepared(Self::GRANULE, address.addr(), sizes, word) {
                return sys::opaque(address);
            }
        }
        Self::insert_rarely_with_site(address, requested, usable, plan, new)
    }

    /// Inserts a block with its site as [`insert_with_site`](Self::insert_with_site) does, where
    /// that does more than update the table.
    #[inline(never)]
    fn insert_rarely_with_site(
        address: *mut u8,
        requested: usize,
        usable: usize,
        plan: Plan,
        NewBlock { site, rate }: NewBlock,
    ) -> *mut u8 {
        let epoch = Epoch::from_number(plan.epoch());
        let block = Block { requested, usable, site, epoch, rate, time: 0 };
        Self::insert_and_record(plan, address.addr(), block);
        sys::opaque(address)
    }

    /// Inserts a block with its site and the time.
    #[cold]
    #[inline(never)]
    fn insert_timed(plan: Plan, address: usize, requested: usize, usable: usize) {
        let NewBlock { site, rate } = site::of_new_block(plan, usable);
        let (epoch, time) = (epoch(), sys::monotonic());
        let block = Block { requested, usable, site, epoch, rate, time };
        Self::insert_and_record(plan, address, block);
    }

    /// Inserts a block, with an event if events are written.
    #[inline(never)]
    pub(super) fn insert_and_record(plan: Plan, address: usize, block: Block) {
        let is_sampled = plan.inserts_sampled();
        if !(is_sampled && BLOCKS.insert_sampled(Self::GRANULE, address, block)) {
            if plan.is_filtered() {
                // Before the block is returned to the program: its free does not ask the filter.
                plan::set_unfiltered();
            }
            let has_record = !PackedBlock::has_inline_sizes(block.requested, block.usable);
            if plan.is_complete() && has_record {
                // Before the block is returned to the program: its free looks at the word.
                plan::set_incomplete();
            }
            BLOCKS.insert(Self::GRANULE, address, block);
        }
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

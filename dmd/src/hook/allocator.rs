//! The allocator's hooks: pass every call to the inner allocator, and keep the table of blocks.
//!
//! ```text
//! alloc    inner alloc, then on_alloc      asleep: counters only
//!                                          profile: insert the block if it is sampled
//!                                          else: insert, by the plan's `Insertion`
//! dealloc  on_dealloc, then inner dealloc  asleep: counters only; else: remove the block
//! realloc  on_realloc                      remove, inner realloc, on_alloc; if null, insert again
//! ```
//!
//! No hook takes a lock, panics or does I/O; the tracker's own memory is in its own pages. The
//! exception is the reference unwinder on old systems (`stack/walk/reference.rs`). Fast functions
//! are small and end in a tail call of the next one, so they save no registers.
#![expect(unsafe_code, reason = "a global allocator is unsafe by nature")]

use std::alloc::{GlobalAlloc, Layout};

use memreport::__private::{allocated as count_allocated, freed as count_freed_bytes};
use memreport::{HeapStatistics, UsableSize};

use super::start;
use crate::event::events::{Event, record};
use crate::event::observers;
use crate::mem::sys;
use crate::sample::plan::{Insertion, Plan, plan};
use crate::sample::rate::SamplingRate;
use crate::stack::site::{self, NewBlock, ObservedBlock};
use crate::table::blocks::Granule;
use crate::table::epoch::epoch;
use crate::table::packed_block::{Block, SiteId};
use crate::table::{BLOCKS, FREED, set_spacing};

/// The tracking allocator, which wraps another one and is asleep until `$DMD` or
/// [`start`](crate::start) wakes it.
///
/// [`global_allocator!`](crate::global_allocator) declares it. While asleep, it only counts bytes.
#[derive(Debug)]
pub struct Dmd<A> {
    inner: A,
    /// True if it is awake even without `$DMD`: in tests, which need the table of blocks.
    wakes_in_tests: bool,
}

/// A change of a block's size, in layouts of the inner allocator.
#[derive(Clone, Copy)]
struct Resize {
    old: Layout,
    new: Layout,
    /// The size that the program requests, in bytes.
    requested: usize,
}

impl<A: UsableSize> Dmd<A> {
    /// The granule of the table: a constant of the inner allocator.
    const GRANULE: Granule = Granule::of_spacing(A::SPACING);

    /// Tracks the blocks of `inner`. With `wakes_in_tests` the table is kept even without `$DMD`.
    ///
    /// Programs call [`global_allocator!`](crate::global_allocator), which keeps the contract:
    ///
    /// ```compile_fail,E0133
    /// let second = dmd::Dmd::new(std::alloc::System, false);
    /// ```
    ///
    /// # Safety
    ///
    /// The value is the program's global allocator, and the only `Dmd` that serves blocks. All
    /// blocks of a process are in one table, whose granule depends on the inner allocator.
    pub const unsafe fn new(inner: A, wakes_in_tests: bool) -> Self {
        Dmd { inner, wakes_in_tests }
    }

    /// The least bytes to request, so that no two blocks start in a granule.
    ///
    /// glibc's smallest chunk has 24 usable bytes, so a larger request costs nothing there. Another
    /// malloc in its place, preloaded or a sanitizer's, may have chunks of 16 bytes; those that
    /// were tried serve 24 bytes with 32, at addresses that are multiples of 32.
    const LEAST: usize = if A::SPACING >= 32 { 24 } else { 16 };

    /// Returns the layout to request from the inner allocator. Small requests are rounded up,
    /// asleep too: a block may be freed in another state than it was allocated in.
    #[inline(always)]
    fn rounded(layout: Layout) -> Layout {
        let size = layout.size().max(Self::LEAST);
        // SAFETY: it is the same layout, or one of at most 24 bytes. These fit every alignment that
        // a layout of one byte can have, and no request is for 0 bytes.
        unsafe { Layout::from_size_align_unchecked(size, layout.align()) }
    }

    /// Counts a new block, and inserts it into the table, depending on the plan.
    ///
    /// # Safety
    ///
    /// `address` is null or a new block of the inner allocator, made with the rounded layout.
    #[inline(always)]
    unsafe fn on_alloc(&self, address: *mut u8, layout: Layout, requested: usize) {
        if address.is_null() {
            return;
        }
        // SAFETY: a new block of the inner allocator.
        let usable = unsafe { self.inner.usable_size_from_layout(address, layout) };
        count_allocated(usable);
        let plan = plan();
        // Tests, not a match: the compiler would build the value of an enum before it branches.
        if plan.samples() {
            if !site::skips_sample(usable) {
                self.on_alloc_profile(plan, address.addr(), requested, usable);
            }
        } else if !plan.is_asleep() {
            self.insert(plan, address.addr(), requested, usable);
        }
    }

    /// Inserts a block that passed the sampler's quick test, if the exact test samples it.
    #[cold]
    #[inline(never)]
    fn on_alloc_profile(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
        match plan.insertion() {
            Insertion::Observed => self.insert_observed(plan, address, requested, usable),
            insertion if site::is_sampled(usable) => match insertion {
                Insertion::Timed => self.insert_timed(plan, address, requested, usable),
                _ => self.insert_with_site(plan, address, requested, usable),
            },
            _ => {}
        }
    }

    /// Inserts a block in the way that the plan names.
    #[inline(never)]
    fn insert(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
        match plan.insertion() {
            Insertion::WithoutStack => {
                if let Some(site) = site::cached_without_stack() {
                    let (epoch, rate) = (epoch(), SamplingRate::EVERY);
                    let block = Block { requested, usable, site, epoch, rate, time: 0 };
                    if BLOCKS.insert_small(Self::GRANULE, address, block) {
                        return;
                    }
                }
                self.insert_with_site(plan, address, requested, usable);
            }
            Insertion::WithSite => self.insert_with_site(plan, address, requested, usable),
            Insertion::Timed => self.insert_timed(plan, address, requested, usable),
            Insertion::Observed => self.insert_observed(plan, address, requested, usable),
            Insertion::Nothing => {}
            Insertion::Undecided => self.decide_and_insert(address, requested, usable),
        }
    }

    /// Inserts a block with its site, and its stack if the plan has stacks.
    #[inline(never)]
    fn insert_with_site(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
        let NewBlock { site, rate } = site::of_new_block(plan, usable);
        let block = Block { requested, usable, site, epoch: epoch(), rate, time: 0 };
        if !BLOCKS.insert_small(Self::GRANULE, address, block) {
            BLOCKS.insert(Self::GRANULE, address, block);
        }
        Self::record_allocated(plan, address, block);
    }

    /// Decides the plan at the first block of the process, and inserts that block.
    #[cold]
    fn decide_and_insert(&self, address: usize, requested: usize, usable: usize) {
        set_spacing(A::SPACING);
        let plan = start::decide(self.wakes_in_tests);
        if plan.samples() {
            self.on_alloc_profile(plan, address, requested, usable);
        } else if !plan.is_asleep() {
            self.insert(plan, address, requested, usable);
        }
    }

    /// Inserts a block with its site and the time.
    #[cold]
    #[inline(never)]
    fn insert_timed(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
        let NewBlock { site, rate } = site::of_new_block_cold(plan, usable);
        let (epoch, time) = (epoch(), sys::monotonic());
        let block = Block { requested, usable, site, epoch, rate, time };
        Self::insert_and_record(plan, address, block);
    }

    /// Inserts a block, with an event if events are written.
    fn insert_and_record(plan: Plan, address: usize, block: Block) {
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
    fn insert_observed(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
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

    /// Removes a block that is about to be freed, and returns its usable bytes.
    ///
    /// # Safety
    ///
    /// `address` is a live block of the inner allocator, made with the rounded layout.
    #[inline(never)]
    unsafe fn on_dealloc(&self, address: *mut u8, layout: Layout) -> usize {
        if !plan().watches_frees()
            && let Some(usable) = BLOCKS.remove_small(Self::GRANULE, address.addr())
        {
            return usable;
        }
        // SAFETY: the contract is the same.
        unsafe { self.on_dealloc_slow(address, layout) }
    }

    /// Removes a large block, one that is not in the table, or one whose end is watched.
    ///
    /// # Safety
    ///
    /// See [`on_dealloc`](Self::on_dealloc).
    #[inline(never)]
    unsafe fn on_dealloc_slow(&self, address: *mut u8, layout: Layout) -> usize {
        let removed = Self::remove(address.addr());
        Self::count_freed(removed);
        match removed {
            Some(block) => block.usable,
            // SAFETY: the block is still live.
            None => unsafe { self.inner.usable_size_from_layout(address, layout) },
        }
    }

    /// Removes a block from the table, with an event if events are written.
    fn remove(address: usize) -> Option<Block> {
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
    fn count_freed(removed: Option<Block>) {
        if let Some(block) = removed.filter(|_| plan().counts_freed()) {
            FREED.count(block);
        }
    }

    /// Resizes a block: removes it, and inserts the new one, or the old one again on failure.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::realloc`. Both layouts are rounded.
    #[inline(never)]
    unsafe fn on_realloc(&self, address: *mut u8, resize: Resize) -> *mut u8 {
        let Resize { old, new, requested } = resize;
        // Remove first: once freed, the address may be another thread's new block.
        let removed = if plan().is_awake() { Self::remove(address.addr()) } else { None };
        let usable = match removed {
            Some(block) => block.usable,
            // SAFETY: the block lives until the call of `realloc`.
            None => unsafe { self.inner.usable_size_from_layout(address, old) },
        };
        // SAFETY: the caller's contract.
        let moved = unsafe { self.inner.realloc(address, old, new.size()) };
        if !moved.is_null() {
            count_freed_bytes(usable);
            Self::count_freed(removed);
            // SAFETY: a new block of the inner allocator.
            unsafe { self.on_alloc(moved, new, requested) };
        } else if let Some(block) = removed {
            // The old block lives on, unchanged.
            Self::insert_and_record(plan(), address.addr(), block);
        }
        moved
    }
}

// SAFETY: every call goes to the inner allocator; layouts are rounded alike in all calls.
unsafe impl<A: UsableSize> GlobalAlloc for Dmd<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let rounded = Self::rounded(layout);
        // SAFETY: the caller's contract.
        let address = unsafe { self.inner.alloc(rounded) };
        // SAFETY: a new block, or null.
        unsafe { self.on_alloc(address, rounded, layout.size()) };
        address
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let rounded = Self::rounded(layout);
        // SAFETY: the caller's contract.
        let address = unsafe { self.inner.alloc_zeroed(rounded) };
        // SAFETY: a new block, or null.
        unsafe { self.on_alloc(address, rounded, layout.size()) };
        address
    }

    #[inline]
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        let rounded = Self::rounded(layout);
        let plan = plan();
        let is_unknown =
            plan.is_asleep() || plan.samples() && !BLOCKS.may_hold(Self::GRANULE, address.addr());
        let usable = if is_unknown {
            // SAFETY: the block lives until the last line.
            unsafe { self.inner.usable_size_from_layout(address, rounded) }
        } else {
            // Remove first: once freed, the address may be another thread's new block.
            // SAFETY: as above.
            unsafe { self.on_dealloc(address, rounded) }
        };
        count_freed_bytes(usable);
        // SAFETY: the caller's contract.
        unsafe { self.inner.dealloc(address, rounded) };
    }

    #[inline]
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let old = Self::rounded(layout);
        // SAFETY: the caller guarantees that the size fits the alignment.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let resize = Resize { old, new: Self::rounded(new), requested: new_size };
        // SAFETY: the caller's contract.
        unsafe { self.on_realloc(address, resize) }
    }
}

// SAFETY: the answers are the inner allocator's; rounding only makes blocks bigger.
unsafe impl<A: UsableSize> UsableSize for Dmd<A> {
    const SPACING: usize = A::SPACING;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // An unknown layout stays that.
        let layout = if layout.size() == 0 { layout } else { Self::rounded(layout) };
        // SAFETY: the caller's contract, with the layout that the inner allocator was given.
        unsafe { self.inner.usable_size(block, layout) }
    }

    #[inline]
    unsafe fn usable_size_from_layout(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: as above.
        unsafe { self.inner.usable_size_from_layout(block, Self::rounded(layout)) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        self.inner.statistics()
    }

    fn release_unused(&self) {
        self.inner.release_unused();
    }
}

/// Declares the program's global allocator, tracked by DMD.
///
/// Without arguments the inner allocator is the system's; otherwise the arguments are those of
/// `memreport::global_allocator!`. Put it into `main.rs`, and into the first file of a test binary:
/// in tests DMD keeps the table of blocks even without `$DMD`, since
/// [`assert_fully_reported!`](crate::assert_fully_reported) needs it.
///
/// ```
/// dmd::global_allocator!();
///
/// fn main() {
///     let words = vec![String::from("heap")];
///     assert_eq!(memreport::measure(&words).blocks, 2);
/// }
/// ```
#[macro_export]
macro_rules! global_allocator {
    ($($allocator:tt)*) => {
        $crate::__private::memreport::__with_allocator!([$crate::__declare_tracked] $($allocator)*);
    };
}

/// Declares an allocator whose blocks are tracked.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_tracked {
    (($value:expr): $allocator:ty) => {
        $crate::__private::memreport::__declare_allocator!(
            $crate::Dmd<$allocator>,
            {
                let inner: $allocator = $value;
                // SAFETY: it becomes the global allocator, of which a program has one.
                unsafe { $crate::Dmd::new(inner, ::core::cfg!(test)) }
            },
            ::core::option::Option::Some(&$crate::__private::Tracking::<$allocator>::NEW)
        );
        $crate::__private::at_start!();
    };
}

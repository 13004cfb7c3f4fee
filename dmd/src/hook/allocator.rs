//! The allocator's hooks: pass every call to the inner allocator, and keep the table of blocks.
//!
//! ```text
//! alloc    asleep: inner alloc, counters
//!          else: inner alloc, then on_alloc: profile: insert the block if it is sampled
//!                                            else: insert, by the plan's `Insertion`
//! dealloc  asleep: counters, inner dealloc
//!          else: remove the block, inner dealloc
//! realloc  remove, inner realloc, on_alloc; if null, insert again
//! ```
//!
//! No hook takes a lock, panics or does I/O; the tracker's own memory is in its own pages. The
//! exception is the reference unwinder on old systems (`stack/walk/reference.rs`). Fast functions
//! are small and end in a tail call of the next one, so they save few registers. That is why slow
//! functions return the address that they are called with.
#![expect(unsafe_code, reason = "a global allocator is unsafe by nature")]

use std::alloc::{GlobalAlloc, Layout};

use memreport::__private::{ThreadSlot, allocated as count_allocated, freed as count_freed_bytes};
use memreport::{HeapStatistics, UsableSize};

use super::start;
use crate::event::events::{Event, record};
use crate::event::observers;
use crate::mem::sys;
use crate::sample::plan::{self, Insertion, Plan, plan};
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

/// The largest alignment of the fast functions. Inner allocators have other functions above it.
const USUAL_ALIGN: usize = 16;

/// A layout that is not known, for queries.
const UNKNOWN: Layout = Layout::new::<()>();

/// A change of a block's size, in layouts of the program.
#[derive(Clone, Copy)]
struct Resize {
    old: Layout,
    new: Layout,
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

    /// Requests a block from the inner allocator.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::alloc`.
    #[inline(always)]
    unsafe fn request<const ZEROED: bool>(&self, layout: Layout) -> *mut u8 {
        if ZEROED {
            // SAFETY: the caller's contract.
            unsafe { self.inner.alloc_zeroed(layout) }
        } else {
            // SAFETY: the caller's contract.
            unsafe { self.inner.alloc(layout) }
        }
    }

    /// Allocates a block, and counts it.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::alloc`.
    #[inline(always)]
    unsafe fn allocate<const ZEROED: bool>(&self, layout: Layout) -> *mut u8 {
        if !plan().is_asleep_and_prepared() || layout.align() > USUAL_ALIGN {
            // SAFETY: the caller's contract.
            return unsafe { self.allocate_awake::<ZEROED>(layout) };
        }
        let rounded = Self::rounded(layout);
        // SAFETY: the caller's contract.
        let address = unsafe { self.request::<ZEROED>(rounded) };
        if address.is_null() {
            return address;
        }
        // SAFETY: sizes are prepared, and it is a new block.
        let usable = unsafe { self.inner.prepared_size(address, rounded) };
        // SAFETY: as above.
        let Some(usable) = usable else { return unsafe { self.query_and_count(address) } };
        // SAFETY: as above.
        let Some(slot) = ThreadSlot::current() else {
            return unsafe { self.query_and_count(address) };
        };
        slot.count_allocated(usable);
        address
    }

    /// Allocates a block, counts it, and inserts it into the table, depending on the plan.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::alloc`.
    #[inline(never)]
    unsafe fn allocate_awake<const ZEROED: bool>(&self, layout: Layout) -> *mut u8 {
        if !plan().is_prepared() || layout.align() > USUAL_ALIGN {
            // SAFETY: the caller's contract.
            return unsafe { self.allocate_slow::<ZEROED>(layout) };
        }
        let rounded = Self::rounded(layout);
        // SAFETY: the caller's contract.
        let address = unsafe { self.request::<ZEROED>(rounded) };
        if address.is_null() {
            return address;
        }
        // SAFETY: sizes are prepared, and it is a new block.
        let usable = unsafe { self.inner.prepared_size(address, rounded) };
        let Some(usable) = usable else {
            // SAFETY: as above.
            return unsafe { self.on_alloc(address, layout.size(), UNKNOWN) };
        };
        let Some(slot) = ThreadSlot::current() else {
            // SAFETY: as above.
            return unsafe { self.on_alloc(address, layout.size(), UNKNOWN) };
        };
        slot.count_allocated(usable);
        Self::insert_by_plan(plan(), address, layout.size(), usable)
    }

    /// Allocates a block in the most general way.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::alloc`.
    #[cold]
    #[inline(never)]
    unsafe fn allocate_slow<const ZEROED: bool>(&self, layout: Layout) -> *mut u8 {
        if !plan().is_decided() {
            self.decide();
        }
        // SAFETY: the caller's contract.
        let address = unsafe { self.request::<ZEROED>(Self::rounded(layout)) };
        if address.is_null() {
            return address;
        }
        // SAFETY: a new block.
        unsafe { self.on_alloc(address, layout.size(), layout) }
    }

    /// Decides the plan before the first block of the process.
    #[cold]
    fn decide(&self) {
        set_spacing(A::SPACING);
        if self.inner.prepare_sizes() {
            plan::set_prepared();
        }
        start::decide(self.wakes_in_tests);
    }

    /// Counts a new block while asleep, by a query of its size, and returns it.
    ///
    /// # Safety
    ///
    /// `address` is a new block of the inner allocator.
    #[cold]
    #[inline(never)]
    unsafe fn query_and_count(&self, address: *mut u8) -> *mut u8 {
        // SAFETY: a new block, with a layout that is not known here.
        count_allocated(unsafe { self.inner.usable_size(address, UNKNOWN) });
        address
    }

    /// Counts a new block, inserts it into the table, depending on the plan, and returns it.
    ///
    /// # Safety
    ///
    /// `address` is a new block of the inner allocator, and `layout` is the one that it was
    /// requested for, or [`UNKNOWN`].
    #[cold]
    #[inline(never)]
    unsafe fn on_alloc(&self, address: *mut u8, requested: usize, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let usable = unsafe { self.usable_size(address, layout) };
        count_allocated(usable);
        Self::insert_by_plan(plan(), address, requested, usable)
    }

    /// Inserts a new block, depending on the plan, and returns it.
    #[inline(always)]
    fn insert_by_plan(plan: Plan, address: *mut u8, requested: usize, usable: usize) -> *mut u8 {
        // Tests, not a match: the compiler would build the value of an enum before it branches.
        if plan.samples() {
            if site::skips_sample(usable) {
                return address;
            }
            return Self::insert_if_sampled(plan, address, requested, usable);
        }
        if plan.is_asleep() {
            return address;
        }
        Self::insert(plan, address, requested, usable)
    }

    /// Inserts a block that passed the sampler's quick test, if the exact test samples it, and
    /// returns it.
    #[cold]
    #[inline(never)]
    fn insert_if_sampled(plan: Plan, address: *mut u8, requested: usize, usable: usize) -> *mut u8 {
        match plan.insertion() {
            Insertion::Observed => Self::insert_observed(plan, address.addr(), requested, usable),
            insertion if site::is_sampled(usable) => match insertion {
                Insertion::Timed => Self::insert_timed(plan, address.addr(), requested, usable),
                _ => return Self::insert_with_site(plan, address, requested, usable),
            },
            _ => {}
        }
        address
    }

    /// Inserts a block in the way that the plan names, and returns it.
    #[inline(always)]
    fn insert(plan: Plan, address: *mut u8, requested: usize, usable: usize) -> *mut u8 {
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

    /// Frees a block: counts it, and removes it from the table.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`.
    #[inline(never)]
    unsafe fn free_awake(&self, address: *mut u8, layout: Layout) {
        let plan = plan();
        let usable = if plan.samples_prepared() && !BLOCKS.may_hold(Self::GRANULE, address.addr()) {
            // SAFETY: sizes are prepared, and the block is live.
            unsafe { self.inner.prepared_size(address, Self::rounded(layout)) }
        } else if plan.removes_simply() {
            // Remove first: once freed, the address may be another thread's new block.
            BLOCKS.remove_small(Self::GRANULE, address.addr())
        } else {
            None
        };
        let Some(usable) = usable else {
            // SAFETY: the caller's contract.
            return unsafe { self.free_slow(address, layout) };
        };
        let Some(slot) = ThreadSlot::current() else {
            // SAFETY: the caller's contract.
            return unsafe { self.free_removed(address, layout, usable) };
        };
        slot.count_freed(usable);
        // SAFETY: the caller's contract.
        unsafe { self.inner.dealloc(address, Self::rounded(layout)) };
    }

    /// Frees a block in the most general way.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`.
    #[inline(never)]
    unsafe fn free_slow(&self, address: *mut u8, layout: Layout) {
        let removed = if plan().is_awake() { Self::remove(address.addr()) } else { None };
        Self::count_freed(removed);
        let usable = match removed {
            Some(block) => block.usable,
            // SAFETY: the block is still live.
            None => unsafe { self.usable_size(address, layout) },
        };
        // SAFETY: the caller's contract.
        unsafe { self.free_removed(address, layout, usable) };
    }

    /// Counts and frees a block that is not in the table.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`.
    #[inline(never)]
    unsafe fn free_removed(&self, address: *mut u8, layout: Layout, usable: usize) {
        count_freed_bytes(usable);
        // SAFETY: the caller's contract.
        unsafe { self.inner.dealloc(address, Self::rounded(layout)) };
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
    /// The same as `GlobalAlloc::realloc`.
    #[inline(never)]
    unsafe fn on_realloc(&self, address: *mut u8, resize: Resize) -> *mut u8 {
        let Resize { old, new } = resize;
        // Remove first: once freed, the address may be another thread's new block.
        let removed = if plan().is_awake() { Self::remove(address.addr()) } else { None };
        let usable = match removed {
            Some(block) => block.usable,
            // SAFETY: the block lives until the call of `realloc`.
            None => unsafe { self.usable_size(address, old) },
        };
        let new_size = Self::rounded(new).size();
        // SAFETY: the caller's contract.
        let moved = unsafe { self.inner.realloc(address, Self::rounded(old), new_size) };
        if !moved.is_null() {
            count_freed_bytes(usable);
            Self::count_freed(removed);
            // SAFETY: a new block of the inner allocator.
            return unsafe { self.on_alloc(moved, new.size(), new) };
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
        // SAFETY: the caller's contract.
        unsafe { self.allocate::<false>(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { self.allocate::<true>(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        if !plan().is_asleep_and_prepared() {
            // SAFETY: the caller's contract.
            return unsafe { self.free_awake(address, layout) };
        }
        let rounded = Self::rounded(layout);
        // SAFETY: sizes are prepared, and the block lives until the last line.
        let usable = unsafe { self.inner.prepared_size(address, rounded) };
        let Some(usable) = usable else {
            // SAFETY: the caller's contract.
            return unsafe { self.free_slow(address, layout) };
        };
        let Some(slot) = ThreadSlot::current() else {
            // SAFETY: the caller's contract.
            return unsafe { self.free_removed(address, layout, usable) };
        };
        slot.count_freed(usable);
        // SAFETY: the caller's contract.
        unsafe { self.inner.dealloc(address, rounded) };
    }

    #[inline]
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the size fits the alignment.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the caller's contract.
        unsafe { self.on_realloc(address, Resize { old: layout, new }) }
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

    fn prepare_sizes(&self) -> bool {
        self.inner.prepare_sizes()
    }

    #[inline]
    unsafe fn prepared_size(&self, block: *const u8, layout: Layout) -> Option<usize> {
        // SAFETY: the caller's contract, with the layout that the inner allocator was given.
        unsafe { self.inner.prepared_size(block, Self::rounded(layout)) }
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

//! The allocator itself: hands every call on, and tells the table of blocks.
//!
//! What holds in every hook: no lock is waited for, nothing panics, nothing is read or written but memory, and what the
//! tracker needs for itself comes from its own pages.
#![expect(unsafe_code, reason = "a global allocator is unsafe by nature")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicUsize};

use memreport::__private as counters;
use memreport::{HeapStatistics, UsableSize};

use super::blocks::{Blocks, Granule};
use super::dead::Dead;
use super::entry::{Block, Generation, SiteId};
use super::events::{Event, note};
use super::plan::{Plan, plan};
use super::rates::Rate;
use super::sites::{self, Born, Drawn};
use super::{observers, start, sys};

/// The dark matter detector: an allocator over another one, asleep until `$DMD` wakes it.
///
/// Declared by [`global_allocator!`](crate::global_allocator). Asleep it counts bytes, and nothing else.
#[derive(Debug)]
pub struct Dmd<A> {
    inner: A,
    /// Whether it is awake though `$DMD` is silent: in tests, which need the table of blocks.
    wakes_in_tests: bool,
}

/// Every live block that entered while the tracker was awake.
pub(crate) static BLOCKS: Blocks = Blocks::new();

/// Every block that was given back, where those are counted.
pub(crate) static DEAD: Dead = Dead::new();

/// The spacing of the declared allocator's blocks; 0 before the first block.
static SPACING: AtomicUsize = AtomicUsize::new(0);

/// The granule of the table; `None` if the program's allocator is not DMD's.
pub(crate) fn granule() -> Option<Granule> {
    // Relaxed: it is stored before the first block is handed out, and never changes.
    match SPACING.load(Relaxed) {
        0 => None,
        bytes => Some(Granule::of_spacing(bytes)),
    }
}

/// The generation that blocks are born in.
static GENERATION: AtomicU8 = AtomicU8::new(Generation::FIRST.number());

/// The generation that blocks are born in now.
#[inline]
pub(crate) fn generation() -> Generation {
    Generation::from_number(GENERATION.load(Relaxed))
}

/// Begins the next generation.
pub(crate) fn next_generation() -> Generation {
    let next = generation().next();
    GENERATION.store(next.number(), Relaxed);
    next
}

impl<A: UsableSize> Dmd<A> {
    /// The granule of the table: belongs to the allocator, and never changes.
    pub const SPACING: usize = A::SPACING;

    const GRANULE: Granule = Granule::of_spacing(A::SPACING);

    /// Tracks the blocks of `inner`. `wakes_in_tests`: even if `$DMD` says nothing, keep the table.
    pub const fn new(inner: A, wakes_in_tests: bool) -> Self {
        Dmd { inner, wakes_in_tests }
    }

    /// What is asked of the inner allocator for this layout: where chunks may be smaller than a granule, small requests
    /// are rounded up. Asleep too, since a block may be given back in another state than it was made in.
    #[inline(always)]
    fn rounded(layout: Layout) -> Layout {
        if A::SPACING >= 32 {
            return layout;
        }
        let (size, align) = (layout.size().max(16), layout.align().max(8));
        // So near the end of the address space that a bigger alignment does not fit: no allocator has such a block.
        Layout::from_size_align(size, align).unwrap_or(layout)
    }

    /// A block was born.
    ///
    /// # Safety
    ///
    /// `address` is null or a fresh block of the inner allocator, made with the rounded layout.
    #[inline(always)]
    unsafe fn born(&self, address: *mut u8, layout: Layout, requested: usize) {
        if address.is_null() {
            return;
        }
        // SAFETY: fresh from the inner allocator.
        let usable = unsafe { self.inner.usable_size(address, layout) };
        counters::allocated(usable);
        let plan = plan();
        if plan.samples() {
            if !sites::misses(usable) {
                self.enter_if_drawn(plan, address.addr(), requested, usable);
            }
        } else if plan != Plan::ASLEEP {
            self.enter(plan, address.addr(), requested, usable);
        }
    }

    // The hooks' inner parts come in pairs: a quick one that needs no registers saved, and ends with a call of the other.

    #[cold]
    #[inline(never)]
    fn enter_if_drawn(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
        if plan.is_observed() {
            self.enter_observed(plan, address, requested, usable);
        } else if sites::is_hit(usable) {
            self.enter_slowly(plan, address, requested, usable);
        }
    }

    #[inline(never)]
    fn enter(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
        if !plan.is_decided() {
            return self.decide_and_enter(address, requested, usable);
        }
        if plan.is_plain()
            && let Some(site) = sites::known_without_stack()
        {
            let (birth, rate) = (generation(), Rate::EVERY);
            let block = Block { requested, usable, site, birth, rate, time: 0 };
            if BLOCKS.insert_quickly(Self::GRANULE, address, block) {
                return;
            }
        }
        self.enter_slowly(plan, address, requested, usable);
    }

    /// The first block.
    #[cold]
    fn decide_and_enter(&self, address: usize, requested: usize, usable: usize) {
        SPACING.store(A::SPACING, Relaxed);
        let plan = start::decide(self.wakes_in_tests);
        if !plan.samples() || sites::is_hit(usable) {
            self.enter_slowly(plan, address, requested, usable);
        }
    }

    #[inline(never)]
    fn enter_slowly(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
        if !plan.enters_as_ever() {
            return self.enter_otherwise(plan, address, requested, usable);
        }
        let Born { site, rate } = sites::here(plan, usable);
        let block = Block { requested, usable, site, birth: generation(), rate, time: 0 };
        if !BLOCKS.insert_quickly(Self::GRANULE, address, block) {
            BLOCKS.insert(Self::GRANULE, address, block);
        }
        if plan.is_watched() {
            note(Event::Born { address, block });
        }
    }

    /// With its time, or because it was drawn, or not at all.
    #[cold]
    #[inline(never)]
    fn enter_otherwise(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
        if plan.is_observed() {
            return self.enter_observed(plan, address, requested, usable);
        }
        if plan.enters() {
            let Born { site, rate } = sites::here_at_leisure(plan, usable);
            let (birth, time) = (generation(), sys::monotonic());
            self.enter_timed(plan, address, Block { requested, usable, site, birth, rate, time });
        }
    }

    fn enter_timed(&self, plan: Plan, address: usize, block: Block) {
        BLOCKS.insert(Self::GRANULE, address, block);
        if plan.is_watched() {
            note(Event::Born { address, block });
        }
    }

    /// While single allocations are observed.
    #[cold]
    #[inline(never)]
    fn enter_observed(&self, plan: Plan, address: usize, requested: usize, usable: usize) {
        let drawn = sites::drawn_here(plan, usable);
        let (site, rate) =
            drawn.map_or((SiteId::UNKNOWN, Rate::EVERY), |drawn| (drawn.site, drawn.rate));
        let (birth, time) = (generation(), sys::monotonic());
        let block = Block { requested, usable, site, birth, rate, time };
        let Some(Drawn { logged_by, .. }) = drawn else {
            return BLOCKS.pass_over(Self::GRANULE, address, block);
        };
        self.enter_timed(plan, address, block);
        if let Some(thread) = logged_by {
            observers::log(address, block, thread);
        }
    }

    /// A block is about to be given back. Says how big it is.
    ///
    /// # Safety
    ///
    /// `address` is a live block of the inner allocator, made with the rounded layout.
    #[inline(never)]
    unsafe fn leaves(&self, address: *mut u8, layout: Layout) -> usize {
        if !plan().is_heard_at_end()
            && let Some(usable) = BLOCKS.take_quickly(Self::GRANULE, address.addr())
        {
            return usable;
        }
        // SAFETY: handed on.
        unsafe { self.leaves_slowly(address, layout) }
    }

    /// # Safety
    ///
    /// As for [`leaves`](Self::leaves).
    #[inline(never)]
    unsafe fn leaves_slowly(&self, address: *mut u8, layout: Layout) -> usize {
        let known = Self::forget(address.addr());
        Self::bury(known);
        match known {
            Some(block) => block.usable,
            // SAFETY: it still lives.
            None => unsafe { self.inner.usable_size(address, layout) },
        }
    }

    fn forget(address: usize) -> Option<Block> {
        let block = if plan().is_observed() {
            BLOCKS.remove_leaving_trace(Self::GRANULE, address)
        } else {
            BLOCKS.remove(Self::GRANULE, address)
        }?;
        if plan().is_watched() {
            note(Event::Freed { address, block });
        }
        Some(block)
    }

    /// A block that was known was given back.
    fn bury(known: Option<Block>) {
        if let Some(block) = known.filter(|_| plan().counts_dead()) {
            DEAD.count(block);
        }
    }

    /// The block is to be made bigger or smaller, which forgets it. The old one is entered again if that fails.
    ///
    /// # Safety
    ///
    /// As for `GlobalAlloc::realloc`; both layouts are rounded.
    #[inline(never)]
    unsafe fn moves(
        &self,
        address: *mut u8,
        (layout, wanted): (Layout, Layout),
        requested: usize,
    ) -> *mut u8 {
        // Forget first: once given back, the address may be another thread's new block.
        let known = if plan().is_awake() { Self::forget(address.addr()) } else { None };
        let usable = match known {
            Some(block) => block.usable,
            // SAFETY: it lives until it is handed on.
            None => unsafe { self.inner.usable_size(address, layout) },
        };
        // SAFETY: handed on.
        let moved = unsafe { self.inner.realloc(address, layout, wanted.size()) };
        if !moved.is_null() {
            counters::freed(usable);
            Self::bury(known);
            // SAFETY: fresh.
            unsafe { self.born(moved, wanted, requested) };
        } else if let Some(block) = known {
            // The old block lives on, unchanged.
            BLOCKS.insert(Self::GRANULE, address.addr(), block);
            if plan().is_watched() {
                note(Event::Born { address: address.addr(), block });
            }
        }
        moved
    }
}

// SAFETY: every call goes to the inner allocator; what is changed of the layout is changed alike in all calls.
unsafe impl<A: UsableSize> GlobalAlloc for Dmd<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let rounded = Self::rounded(layout);
        // SAFETY: handed on.
        let address = unsafe { self.inner.alloc(rounded) };
        // SAFETY: fresh.
        unsafe { self.born(address, rounded, layout.size()) };
        address
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let rounded = Self::rounded(layout);
        // SAFETY: handed on.
        let address = unsafe { self.inner.alloc_zeroed(rounded) };
        // SAFETY: fresh.
        unsafe { self.born(address, rounded, layout.size()) };
        address
    }

    #[inline]
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        let rounded = Self::rounded(layout);
        let plan = plan();
        let is_unknown = plan == Plan::ASLEEP
            || plan.samples() && !BLOCKS.may_hold(Self::GRANULE, address.addr());
        let usable = if is_unknown {
            // SAFETY: the block lives until the last line.
            unsafe { self.inner.usable_size(address, rounded) }
        } else {
            // Forget first: once freed, the address may be another thread's new block.
            // SAFETY: as above.
            unsafe { self.leaves(address, rounded) }
        };
        counters::freed(usable);
        // SAFETY: handed on.
        unsafe { self.inner.dealloc(address, rounded) };
    }

    #[inline]
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let rounded = Self::rounded(layout);
        // SAFETY: the caller vouches that the size fits the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let layouts = (rounded, Self::rounded(wanted));
        // SAFETY: handed on.
        unsafe { self.moves(address, layouts, new_size) }
    }
}

// SAFETY: the inner allocator's answers; the rounding only makes blocks bigger.
unsafe impl<A: UsableSize> UsableSize for Dmd<A> {
    const SPACING: usize = A::SPACING;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: handed on, with the layout that the inner allocator was given.
        unsafe { self.inner.usable_size(block, Self::rounded(layout)) }
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
/// Without arguments it is the system's, and otherwise as `memreport::global_allocator!`. Put it into `main.rs`, and where
/// a test binary has none, into its first file: there DMD keeps the table of blocks even when `$DMD` says nothing, since
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
            $crate::Dmd::new($value, ::core::cfg!(test)),
            ::core::option::Option::Some(&$crate::__private::Tracking::<$allocator>::NEW)
        );
        $crate::__private::at_start!();
    };
}

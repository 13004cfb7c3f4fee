//! The allocator's hooks: pass every call to the inner allocator, and keep the table of blocks.
//!
//! ```text
//! alloc    asleep: inner alloc, counters
//!          else: inner alloc, counters, then profile: insert the block if it is sampled
//!                                            else: insert it, by the plan's `Insertion`
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
use memreport::{HeapRest, HeapStatistics, UsableSize};

use super::c_heap::{self, below};
use super::start::{self, Place};
use crate::sample::plan::{self, plan};
use crate::table::set_granule;

/// The tracking allocator, which wraps another one and is asleep until `$DMD` or
/// [`start`](crate::start) wakes it.
///
/// [`global_allocator!`](crate::global_allocator) declares it. While asleep, it only counts bytes.
#[derive(Debug)]
pub struct Dmd<A> {
    pub(super) inner: A,
    place: Place,
}

/// The largest alignment of the fast functions. Inner allocators have other functions above it.
const USUAL_ALIGN: usize = 16;

/// A change of a block's size, in layouts of the program.
#[derive(Clone, Copy)]
struct Resize {
    old: Layout,
    new: Layout,
}

/// The size of a block.
struct BlockSize {
    usable: usize,
    /// True if it took a query, though sizes are prepared.
    is_queried: bool,
}

impl<A: UsableSize> Dmd<A> {
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
        let place = if wakes_in_tests { Place::Test } else { Place::Program };
        Dmd { inner, place }
    }

    /// Tracks the blocks of `inner`, as the `malloc` of a program that was built without DMD.
    ///
    /// # Safety
    ///
    /// The same as [`new`](Self::new): the value serves `malloc` and the global allocator.
    #[doc(hidden)]
    pub const unsafe fn preloaded(inner: A) -> Self {
        Dmd { inner, place: Place::Preloaded }
    }

    /// Tracks the blocks of C's functions, with the table of the program's own allocator.
    ///
    /// # Safety
    ///
    /// The spacing is the program's allocator's, and calls of `inner` return blocks of one malloc.
    pub(super) const unsafe fn of_c(inner: A, place: Place) -> Self {
        Dmd { inner, place }
    }

    /// The least bytes to request, so that no two blocks start in a granule. Where every block has
    /// 16 bytes in any case, requests are not changed.
    ///
    /// glibc's smallest chunk has 24 usable bytes, so a larger request costs nothing there. Another
    /// malloc in its place, preloaded or a sanitizer's, may have chunks of 16 bytes; those that
    /// were tried serve 24 bytes with 32, at addresses that are multiples of 32.
    const LEAST: usize = if A::SPACING >= 32 { 24 } else { 16 };

    /// Returns the layout to request from the inner allocator. Small requests are rounded up,
    /// asleep too: a block may be freed in another state than it was allocated in.
    #[inline(always)]
    pub(super) fn rounded(layout: Layout) -> Layout {
        if A::LEAST_IS_16 && Self::LEAST == 16 {
            return layout;
        }
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
            unsafe { self.inner.counted_alloc_zeroed(layout) }
        } else {
            // SAFETY: the caller's contract.
            unsafe { self.inner.counted_alloc(layout) }
        }
    }

    /// Allocates a block, and counts it.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::alloc`.
    #[inline(always)]
    unsafe fn allocate<const ZEROED: bool>(&self, layout: Layout) -> *mut u8 {
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
        let usable = unsafe { self.prepared_size(address, layout) };
        let Some(usable) = usable else {
            // SAFETY: as above.
            return unsafe { self.query_and_insert(address, layout.size()) };
        };
        let slot = ThreadSlot::current_or_stopped();
        if slot.counts_before_stop(usable) {
            return address;
        }
        Self::on_alloc(address, layout.size(), usable, slot)
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
        let address = below(|| unsafe { self.request::<ZEROED>(Self::rounded(layout)) });
        if address.is_null() {
            return address;
        }
        // SAFETY: a new block.
        unsafe { self.on_new(address, layout) }
    }

    /// Handles a new block of any plan, and returns it.
    ///
    /// # Safety
    ///
    /// `address` is a new block of the inner allocator, of this layout.
    unsafe fn on_new(&self, address: *mut u8, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let BlockSize { usable, is_queried } = unsafe { self.block_size(address, layout) };
        let slot = ThreadSlot::current_or_stopped();
        if slot.counts_before_stop(usable) {
            return address;
        }
        if is_queried {
            return Self::on_alloc_queried(address, layout.size(), usable);
        }
        Self::on_alloc(address, layout.size(), usable, slot)
    }

    /// Decides the plan before the first block of the process.
    #[cold]
    fn decide(&self) {
        set_granule(Self::GRANULE);
        let is_prepared = !c_heap::is_connected() && self.inner.prepare_sizes();
        if c_heap::is_connected() {
            plan::set_c_heap();
        }
        start::decide(self.place);
        // Last, since a thread that sees it takes the plan as decided.
        if is_prepared {
            plan::set_prepared();
        }
    }

    /// Handles a new block whose size takes a query, and returns it.
    ///
    /// # Safety
    ///
    /// `address` is a new block of the inner allocator, which has prepared sizes. Its alignment is
    /// at most [`USUAL_ALIGN`].
    #[cold]
    #[inline(never)]
    unsafe fn query_and_insert(&self, address: *mut u8, requested: usize) -> *mut u8 {
        // SAFETY: the caller has the size from a layout, and no block is so large that rounding
        // its size up would overflow.
        let layout = unsafe { Layout::from_size_align_unchecked(requested, USUAL_ALIGN) };
        // SAFETY: a new block of this layout, but for the alignment.
        let usable = unsafe { self.inner.usable_size(address, Self::rounded(layout)) };
        let slot = ThreadSlot::current_or_stopped();
        if slot.counts_before_stop(usable) {
            return address;
        }
        Self::on_alloc_queried(address, requested, usable)
    }

    /// Returns the usable bytes of a block.
    ///
    /// # Safety
    ///
    /// `address` is a live block of the inner allocator, and `layout` is its current layout.
    pub(super) unsafe fn size(&self, address: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller's contract.
        unsafe { self.block_size(address, layout) }.usable
    }

    /// Returns the usable bytes of a block, and how they were found.
    ///
    /// # Safety
    ///
    /// The same as [`size`](Self::size).
    unsafe fn block_size(&self, address: *const u8, layout: Layout) -> BlockSize {
        let (rounded, is_prepared) = (Self::rounded(layout), plan().is_prepared());
        if is_prepared {
            // SAFETY: sizes are prepared, and the caller's contract.
            if let Some(usable) = unsafe { self.inner.prepared_size(address, rounded) } {
                return BlockSize { usable, is_queried: false };
            }
        }
        // SAFETY: the caller's contract.
        let usable = unsafe { self.inner.usable_size(address, rounded) };
        BlockSize { usable, is_queried: is_prepared }
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
            None => unsafe { self.size(address, old) },
        };
        // The call may copy for long, and the table does not have the block meanwhile: neither do
        // the counters.
        if removed.is_some() {
            count_freed_bytes(usable);
        }
        let new_size = Self::rounded(new).size();
        // SAFETY: the caller's contract.
        let moved =
            below(|| unsafe { self.inner.counted_realloc(address, Self::rounded(old), new_size) });
        if !moved.is_null() {
            if removed.is_none() {
                count_freed_bytes(usable);
            }
            Self::count_freed(removed);
            // SAFETY: a new block of the inner allocator.
            return unsafe { self.on_new(moved, new) };
        }
        if let Some(block) = removed {
            // The old block lives on, unchanged.
            count_allocated(usable);
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
        let plan = plan();
        if !plan.is_asleep_and_prepared() {
            let (size, align) = (layout.size(), layout.align());
            if plan.removes_unseen() {
                // SAFETY: the caller's contract.
                return unsafe { Self::free_unseen(address, size, align, self) };
            }
            if plan.removes_simply_unsampled() {
                // SAFETY: the caller's contract.
                return unsafe { Self::free_awake(address, size, align, self) };
            }
            // SAFETY: the caller's contract.
            return unsafe { Self::free_watched(address, size, align, self) };
        }
        // SAFETY: sizes are prepared, and the block lives until the last line.
        let usable = unsafe { self.prepared_size(address, layout) };
        let Some(usable) = usable else {
            let (size, align) = (layout.size(), layout.align());
            // SAFETY: the caller's contract.
            return unsafe { Self::free_slow(address, size, align, self) };
        };
        // SAFETY: the caller's contract.
        unsafe { self.count_and_free::<true>(address, layout, usable) };
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
    const ALIGN: usize = A::ALIGN;
    // Smaller requests are rounded up here.
    const LEAST_IS_16: bool = true;
    const READS_HEADER: bool = A::READS_HEADER;
    const IS_MALLOC: bool = A::IS_MALLOC;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        if layout.size() == 0 {
            // SAFETY: the caller's contract. An unknown layout stays that.
            return unsafe { self.inner.usable_size(block, layout) };
        }
        // SAFETY: the caller's contract.
        unsafe { self.size(block, layout) }
    }

    fn prepare_sizes(&self) -> bool {
        self.inner.prepare_sizes()
    }

    #[inline(always)]
    unsafe fn prepared_size(&self, block: *const u8, layout: Layout) -> Option<usize> {
        if Self::LEAST == 16 {
            // SAFETY: the caller's contract. At least 16 bytes were requested of the inner
            // allocator. The rounded layout need not be kept while a block is requested.
            return unsafe { self.inner.prepared_size_from_16(block, layout) };
        }
        // SAFETY: the caller's contract, with the layout that the inner allocator was given.
        unsafe { self.inner.prepared_size(block, Self::rounded(layout)) }
    }

    fn prepared_class(&self, size: usize) -> Option<usize> {
        let is_prepared = plan().is_prepared();
        is_prepared.then(|| self.inner.prepared_class(size.max(Self::LEAST))).flatten()
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        let mut statistics = self.inner.statistics()?;
        // C's blocks are in the program's own sums then.
        if plan().has_c_heap() && statistics.rest == HeapRest::OtherCode {
            statistics.rest = HeapRest::BinUnused;
        }
        Some(statistics)
    }

    fn release_unused(&self) {
        self.inner.release_unused();
    }
}

//! Frees blocks while the tracker is awake: removes them from the table, and counts them.
//!
//! The arguments of these functions are in the order of `__rust_dealloc`, so that none has to move
//! to another register on the way.
#![expect(unsafe_code, reason = "a global allocator is unsafe by nature")]

use std::alloc::Layout;

use memreport::__private::{ThreadSlot, freed as count_freed_bytes};
use memreport::UsableSize;

use super::allocator::Dmd;
use super::c_heap::below;
use crate::sample::plan::plan;
use crate::table::BLOCKS;

impl<A: UsableSize> Dmd<A> {
    /// Frees a block of a table that has every block: removes it without a look at its word, if
    /// that is possible, and counts it. A word is mostly not in the cache, and nothing waits for a
    /// store.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`. Sizes are prepared.
    #[inline(always)]
    pub(super) unsafe fn free_unseen(address: *mut u8, size: usize, align: usize, this: &Self) {
        // SAFETY: the caller has them from a layout.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        // SAFETY: sizes are prepared, and the block lives until the last line.
        let usable = unsafe { this.prepared_size(address, layout) };
        // Remove first: once freed, the address may be another thread's new block.
        if let Some(usable) = usable
            && BLOCKS.remove_unseen(Self::GRANULE, address.addr(), usable)
        {
            // SAFETY: the caller's contract.
            return unsafe { this.count_and_free::<true>(address, layout, usable) };
        }
        // SAFETY: the caller's contract.
        unsafe { Self::free_awake(address, size, align, this) };
    }

    /// Frees a block: counts it, and removes it from the table. The arguments are in the order of
    /// the caller's, so that none has to move to another register.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`.
    #[inline(never)]
    pub(super) unsafe fn free_awake(address: *mut u8, size: usize, align: usize, this: &Self) {
        // SAFETY: the caller has them from a layout.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        // Remove first: once freed, the address may be another thread's new block.
        let Some(usable) = BLOCKS.remove_small(Self::GRANULE, address.addr()) else {
            // SAFETY: the caller's contract.
            return unsafe { Self::free_slow(address, size, align, this) };
        };
        // SAFETY: the caller's contract.
        unsafe { this.count_and_free::<false>(address, layout, usable) };
    }

    /// Counts and frees a block that is not in the table, if this thread has counters.
    ///
    /// With `PREPARED`, `usable` is the block's prepared size, and the allocator may rely on it.
    /// Otherwise it is from the table, where a wrong word must not damage the heap.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`.
    #[inline(always)]
    pub(super) unsafe fn count_and_free<const PREPARED: bool>(
        &self,
        address: *mut u8,
        layout: Layout,
        usable: usize,
    ) {
        let Some(slot) = ThreadSlot::current() else {
            let (size, align) = (layout.size(), layout.align());
            // SAFETY: the caller's contract.
            return unsafe { Self::free_removed(address, size, align, self, usable) };
        };
        slot.count_freed(usable);
        let layout = Self::rounded(layout);
        if PREPARED {
            // SAFETY: the caller's contract.
            unsafe { self.inner.prepared_dealloc(address, layout, usable) };
        } else {
            // SAFETY: the caller's contract.
            unsafe { self.inner.counted_dealloc(address, layout) };
        }
    }

    /// Frees a block of a profile, or in an unusual mode.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`.
    #[inline(never)]
    pub(super) unsafe fn free_watched(address: *mut u8, size: usize, align: usize, this: &Self) {
        // SAFETY: the caller has them from a layout.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        let plan = plan();
        let is_untracked = if plan.is_filtered_and_prepared() {
            !BLOCKS.may_hold_sampled(address.addr())
        } else {
            plan.samples_prepared() && !BLOCKS.may_hold(Self::GRANULE, address.addr())
        };
        if is_untracked {
            // SAFETY: sizes are prepared, and the block is live.
            let usable = unsafe { this.prepared_size(address, layout) };
            let Some(usable) = usable else {
                // SAFETY: the caller's contract.
                return unsafe { Self::free_slow(address, size, align, this) };
            };
            // SAFETY: the caller's contract.
            return unsafe { this.count_and_free::<true>(address, layout, usable) };
        }
        if plan.removes_simply() {
            // SAFETY: the caller's contract.
            return unsafe { Self::free_awake(address, size, align, this) };
        }
        // SAFETY: the caller's contract.
        unsafe { Self::free_slow(address, size, align, this) };
    }

    /// Frees a block in the most general way.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn free_slow(address: *mut u8, size: usize, align: usize, this: &Self) {
        // SAFETY: the caller has them from a layout.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        let removed = if plan().is_awake() { Self::remove(address.addr()) } else { None };
        Self::count_freed(removed);
        let usable = match removed {
            Some(block) => block.usable,
            // SAFETY: the block is still live.
            None => unsafe { this.size(address, layout) },
        };
        // SAFETY: the caller's contract.
        unsafe { Self::free_removed(address, size, align, this, usable) };
    }

    /// Counts and frees a block that is not in the table.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn free_removed(
        address: *mut u8,
        size: usize,
        align: usize,
        this: &Self,
        usable: usize,
    ) {
        // SAFETY: the caller has them from a layout.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        count_freed_bytes(usable);
        // SAFETY: the caller's contract.
        below(|| unsafe { this.inner.counted_dealloc(address, Self::rounded(layout)) });
    }
}

//! Wraps a global allocator and counts the blocks and bytes that it hands out and takes back.
#![expect(unsafe_code, reason = "a global allocator is unsafe by nature")]

use core::alloc::Layout;
use std::alloc::GlobalAlloc;

use super::counters;
use super::statistics::HeapStatistics;
use super::usable_size::UsableSize;

/// An allocator that counts blocks and bytes and does nothing else.
/// [`global_allocator!`](crate::global_allocator) declares one.
#[derive(Debug, Default)]
pub struct Counted<A> {
    inner: A,
}

impl<A> Counted<A> {
    /// Wraps `inner` and counts its blocks.
    pub const fn new(inner: A) -> Self {
        Counted { inner }
    }
}

// SAFETY: every call goes to the inner allocator with unchanged arguments. Counting neither
// allocates nor panics.
unsafe impl<A: UsableSize> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        let block = unsafe { self.inner.alloc(layout) };
        // SAFETY: fresh from the inner allocator.
        unsafe { self.count_allocated(block, layout) };
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        // SAFETY: fresh from the inner allocator.
        unsafe { self.count_allocated(block, layout) };
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block lives until the next line.
        counters::freed(unsafe { self.inner.usable_size(block, layout) });
        // SAFETY: the caller's contract is passed through.
        unsafe { self.inner.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the block lives until the next line.
        let before = unsafe { self.inner.usable_size(block, layout) };
        // SAFETY: the caller's contract is passed through.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            counters::freed(before);
            // SAFETY: the caller of `realloc` vouches that the size fits the alignment.
            let layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
            // SAFETY: fresh from the inner allocator.
            unsafe { self.count_allocated(moved, layout) };
        }
        moved
    }
}

impl<A: UsableSize> Counted<A> {
    /// Counts a new block.
    ///
    /// # Safety
    ///
    /// `block` is null or a live block of the inner allocator with this layout.
    #[inline]
    unsafe fn count_allocated(&self, block: *mut u8, layout: Layout) {
        if !block.is_null() {
            // SAFETY: live, by the caller's contract.
            counters::allocated(unsafe { self.inner.usable_size(block, layout) });
        }
    }
}

// SAFETY: the inner allocator answers about its own blocks.
unsafe impl<A: UsableSize> UsableSize for Counted<A> {
    const SPACING: usize = A::SPACING;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller's contract is passed through.
        unsafe { self.inner.usable_size(block, layout) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        self.inner.statistics()
    }

    fn release_unused(&self) {
        self.inner.release_unused();
    }
}

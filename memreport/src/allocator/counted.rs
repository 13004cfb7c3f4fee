//! Wraps a global allocator and counts the blocks and bytes that it hands out and takes back.
#![expect(unsafe_code, reason = "a global allocator is unsafe by nature")]

use core::alloc::Layout;
use std::alloc::GlobalAlloc;

use super::counters;
use super::statistics::HeapStatistics;
use super::usable_size::UsableSize;

/// An allocator whose blocks are counted, and nothing else: what [`global_allocator!`](crate::global_allocator) declares.
#[derive(Debug, Default)]
pub struct Counted<A> {
    inner: A,
}

impl<A> Counted<A> {
    /// Counts the blocks of `inner`.
    pub const fn new(inner: A) -> Self {
        Counted { inner }
    }
}

// SAFETY: every call goes to the inner allocator with the arguments unchanged; counting neither allocates nor panics.
unsafe impl<A: UsableSize> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: handed on.
        let block = unsafe { self.inner.alloc(layout) };
        // SAFETY: fresh from the inner allocator.
        unsafe { self.born(block, layout) };
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: handed on.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        // SAFETY: fresh from the inner allocator.
        unsafe { self.born(block, layout) };
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block lives until the next line.
        counters::freed(unsafe { self.inner.usable_size(block, layout) });
        // SAFETY: handed on.
        unsafe { self.inner.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the block lives until the next line.
        let before = unsafe { self.inner.usable_size(block, layout) };
        // SAFETY: handed on.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            counters::freed(before);
            // SAFETY: the caller of `realloc` vouches that the size fits the alignment.
            let layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
            // SAFETY: fresh from the inner allocator.
            unsafe { self.born(moved, layout) };
        }
        moved
    }
}

impl<A: UsableSize> Counted<A> {
    /// # Safety
    ///
    /// `block` is null or a live block of the inner allocator with this layout.
    #[inline]
    unsafe fn born(&self, block: *mut u8, layout: Layout) {
        if !block.is_null() {
            // SAFETY: live, by the caller's promise.
            counters::allocated(unsafe { self.inner.usable_size(block, layout) });
        }
    }
}

// SAFETY: the inner allocator's answers about the inner allocator's blocks.
unsafe impl<A: UsableSize> UsableSize for Counted<A> {
    const SPACING: usize = A::SPACING;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: handed on.
        unsafe { self.inner.usable_size(block, layout) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        self.inner.statistics()
    }

    fn give_back(&self) {
        self.inner.give_back();
    }
}

//! Defines `UsableSize`, the size query that a global allocator answers about its own blocks.
#![expect(unsafe_code, reason = "a global allocator and its size query are unsafe by nature")]

use core::alloc::Layout;
use std::alloc::GlobalAlloc;

use super::statistics::HeapStatistics;

/// An allocator that reports the usable size of its blocks.
///
/// # Safety
///
/// `usable_size` returns at least the layout's size, and at most the distance to the next block. It
/// returns the same number for as long as the block lives. Live blocks of at least 16 bytes never
/// start within the same aligned [`SPACING`](Self::SPACING) bytes.
pub unsafe trait UsableSize: GlobalAlloc {
    /// The least distance in bytes between the starts of blocks of at least 16 bytes: 16, or 32
    /// where the allocator has no smaller chunk.
    const SPACING: usize = 16;

    /// Returns the usable bytes of a block, slop included.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator. `layout` is its current layout, or the layout of
    /// `()` if unknown.
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize;

    /// Returns the allocator's statistics, if it has any. Called between reporters; it may take
    /// locks of its own.
    fn statistics(&self) -> Option<HeapStatistics> {
        None
    }

    /// Releases free memory that the allocator caches to the system, where it has a function for
    /// that.
    fn release_unused(&self) {}
}

/// An allocator without a size query. The layout of a block stands in, so slop is not counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayoutSizes<A>(pub A);

// SAFETY: every call is passed through unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LayoutSizes<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is passed through.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        unsafe { self.0.realloc(block, layout, new_size) }
    }
}

// SAFETY: the requested bytes may always be used, and blocks do not overlap.
unsafe impl<A: GlobalAlloc> UsableSize for LayoutSizes<A> {
    unsafe fn usable_size(&self, _block: *const u8, layout: Layout) -> usize {
        layout.size()
    }
}

//! Defines `UsableSize`, the size query that a global allocator answers about its own blocks.
#![expect(unsafe_code, reason = "a global allocator and its size query are unsafe by nature")]

use core::alloc::Layout;
use std::alloc::GlobalAlloc;

use super::statistics::HeapStatistics;

/// An allocator that can say how much of a block may be used.
///
/// # Safety
///
/// `usable_size` gives at least the layout's size and at most what lies between this block and the next, and it gives
/// the same number from the block's birth to its end. Live blocks of at least 16 bytes never start within the same
/// aligned [`SPACING`](Self::SPACING) bytes.
pub unsafe trait UsableSize: GlobalAlloc {
    /// How far apart blocks of at least 16 bytes start, in bytes: 16, or 32 where the allocator has no smaller chunk.
    const SPACING: usize = 16;

    /// The bytes that may be used of a block, slop included.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator. `layout` is the one that it has now, or that of `()` if unknown.
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize;

    /// What the allocator says of itself, if it can. It is asked between reporters, and may take locks of its own.
    fn statistics(&self) -> Option<HeapStatistics> {
        None
    }

    /// Gives free memory that it keeps back to the system, where it can be told to.
    fn give_back(&self) {}
}

/// An allocator that cannot say how big its blocks are: their layouts stand in, so slop is not seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayoutSizes<A>(pub A);

// SAFETY: handed on unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LayoutSizes<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: handed on.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: handed on.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: handed on.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: handed on.
        unsafe { self.0.realloc(block, layout, new_size) }
    }
}

// SAFETY: what was asked for may always be used, and blocks do not overlap.
unsafe impl<A: GlobalAlloc> UsableSize for LayoutSizes<A> {
    unsafe fn usable_size(&self, _block: *const u8, layout: Layout) -> usize {
        layout.size()
    }
}

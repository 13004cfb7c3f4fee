//! Declares the tracker of this process: the global allocator of this library's own code, and of
//! every caller of its functions.
#![expect(unsafe_code, reason = "a global allocator is unsafe by nature")]

use std::alloc::{GlobalAlloc, Layout};

use dmd::Dmd;
use memreport::{HeapStatistics, UsableSize};

use crate::next::Next;

// SAFETY: the only tracker of this library: the global allocator and the functions of C call it.
pub(crate) static TRACKER: Dmd<Next> = unsafe { Dmd::preloaded(Next) };

/// The global allocator of this library's own code, which calls [`TRACKER`].
struct Own;

// SAFETY: every call is passed through.
unsafe impl GlobalAlloc for Own {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { TRACKER.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { TRACKER.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { TRACKER.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { TRACKER.realloc(block, layout, size) }
    }
}

// SAFETY: the answers are the tracker's.
unsafe impl UsableSize for Own {
    const SPACING: usize = <Dmd<Next> as UsableSize>::SPACING;
    const ALIGN: usize = <Dmd<Next> as UsableSize>::ALIGN;
    const READS_HEADER: bool = <Dmd<Next> as UsableSize>::READS_HEADER;
    const IS_MALLOC: bool = <Dmd<Next> as UsableSize>::IS_MALLOC;

    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller's contract.
        unsafe { TRACKER.usable_size(block, layout) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        TRACKER.statistics()
    }

    fn release_unused(&self) {
        TRACKER.release_unused();
    }
}

dmd::__declare_preloaded!(Own, Own, Next);

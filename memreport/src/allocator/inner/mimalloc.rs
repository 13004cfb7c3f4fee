//! Implements `UsableSize` for mimalloc, by the crate `mimalloc` 0.1.
#![expect(unsafe_code, reason = "asks about blocks, and for statistics")]

use core::alloc::Layout;
use core::ptr;

use mimalloc::MiMalloc;

use crate::allocator::statistics::HeapStatistics;
use crate::allocator::usable_size::UsableSize;

// SAFETY: a block's usable size reaches to the end of its slot in the page, and stays the same
// until the block is reallocated. Slots for at least 16 bytes have 16 or more. A block with a
// larger alignment begins inside its slot.
unsafe impl UsableSize for MiMalloc {
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of this allocator, by the caller's contract.
        unsafe { self.usable_size(block) }
    }

    fn prepare_sizes(&self) -> bool {
        true
    }

    /// Queries: a block that is resized in place keeps its size, so the layout does not tell it.
    #[inline]
    unsafe fn prepared_size(&self, block: *const u8, _layout: Layout) -> Option<usize> {
        // SAFETY: a live block of this allocator, by the caller's contract.
        Some(unsafe { self.usable_size(block) })
    }

    /// Returns the committed bytes alone: release builds count nothing else, and their resident
    /// bytes are the same number.
    fn statistics(&self) -> Option<HeapStatistics> {
        let mut committed = 0_usize;
        let none = ptr::null_mut();
        // SAFETY: every argument may be null. The sixth receives the committed bytes.
        unsafe {
            libmimalloc_sys::mi_process_info(
                none,
                none,
                none,
                none,
                none,
                &raw mut committed,
                none,
                none,
            );
        };
        (committed > 0).then(|| HeapStatistics::new("mimalloc", committed as u64))
    }

    fn release_unused(&self) {
        // SAFETY: a plain call. It collects only this thread's heap and abandoned ones.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}

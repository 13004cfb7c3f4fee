//! jemalloc, by the crate `tikv-jemallocator` 0.7.
#![expect(unsafe_code, reason = "asks about blocks")]

use core::alloc::Layout;

use tikv_jemallocator::Jemalloc;

use super::UsableSize;

// SAFETY: a block's usable size is that of its size class, which it keeps until it is reallocated, also in place. Size
// classes of at least 16 bytes are multiples of 16, and blocks of a class lie side by side.
unsafe impl UsableSize for Jemalloc {
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of this allocator, by the caller's promise.
        unsafe { tikv_jemallocator::usable_size(block) }
    }
}

//! mimalloc, by the crate `mimalloc` 0.1.
#![expect(unsafe_code, reason = "asks about blocks")]

use core::alloc::Layout;

use mimalloc::MiMalloc;

use super::UsableSize;

// SAFETY: a block's usable size is what lies between it and the end of its place in the page, and stays so until it is
// reallocated. Places for at least 16 bytes have 16 or more; a block that is aligned further begins inside its place.
unsafe impl UsableSize for MiMalloc {
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of this allocator, by the caller's promise.
        unsafe { self.usable_size(block) }
    }
}

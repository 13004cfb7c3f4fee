//! mimalloc, by the crate `mimalloc` 0.1.
#![expect(unsafe_code, reason = "asks about blocks, and for statistics")]

use core::alloc::Layout;
use core::ptr;

use mimalloc::MiMalloc;

use super::statistics::HeapStatistics;
use super::usable_size::UsableSize;

// SAFETY: a block's usable size is what lies between it and the end of its place in the page, and stays so until it is
// reallocated. Places for at least 16 bytes have 16 or more; a block that is aligned further begins inside its place.
unsafe impl UsableSize for MiMalloc {
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of this allocator, by the caller's promise.
        unsafe { self.usable_size(block) }
    }

    /// Only how much is committed is kept in release builds, and what is called resident there is the same number.
    fn statistics(&self) -> Option<HeapStatistics> {
        let mut committed = 0_usize;
        let none = ptr::null_mut();
        // SAFETY: every argument may be null, and the sixth is where the bytes go.
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

    fn give_back(&self) {
        // SAFETY: a plain call; only what this thread's heap and the abandoned ones keep is collected.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}

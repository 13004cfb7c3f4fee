//! How much of a block the C library's malloc gave.
#![expect(unsafe_code, reason = "asks about blocks, or reads the word before them")]

pub(crate) mod chunk;
pub(crate) mod glibc;

use core::alloc::Layout;
use std::alloc::System;

use super::statistics::HeapStatistics;
use super::usable_size::UsableSize;

#[cfg(all(unix, not(target_vendor = "apple")))]
// SAFETY: on these systems `System` is the C library's malloc, which `malloc_usable_size` belongs to. glibc's smallest chunk
// is 32 bytes; the sizes of all are multiples of 16.
unsafe impl UsableSize for System {
    const SPACING: usize =
        if cfg!(target_env = "gnu") && size_of::<usize>() == 8 { 32 } else { 16 };

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of malloc, by the caller's promise.
        unsafe { chunk::usable_size(block) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        statistics()
    }
}

#[cfg(target_vendor = "apple")]
// SAFETY: `System` is the default malloc zone, which `malloc_size` belongs to.
unsafe impl UsableSize for System {
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of malloc, by the caller's promise.
        unsafe { libc::malloc_size(block.cast()) }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn statistics() -> Option<HeapStatistics> {
    let statistics = glibc::statistics()?;
    // Another malloc that was preloaded has the blocks, and glibc's own next to none.
    (statistics.in_use() >= super::counters::totals().live_bytes()).then_some(statistics)
}

#[cfg(all(unix, not(target_vendor = "apple"), not(all(target_os = "linux", target_env = "gnu"))))]
fn statistics() -> Option<HeapStatistics> {
    None
}

/// Has the C library give free memory back to the system, where it can be told to.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a plain call, of any thread at any time; also where another allocator is declared, since C code has a heap too.
    unsafe {
        libc::malloc_trim(0);
    }
}

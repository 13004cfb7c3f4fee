//! Implements `UsableSize` for jemalloc, by the crate `tikv-jemallocator` 0.7.
#![expect(unsafe_code, reason = "asks about blocks, and for statistics")]

mod size_class;

use core::alloc::Layout;
use core::ffi::CStr;
use core::ptr;

use tikv_jemallocator::Jemalloc;

use super::statistics::{HeapRest, HeapStatistics};
use super::usable_size::UsableSize;

// SAFETY: a block's usable size is the size of its size class. It keeps that class until it is
// reallocated, also in place. Size classes of at least 16 bytes are multiples of 16, and blocks of
// a class lie side by side.
unsafe impl UsableSize for Jemalloc {
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of this allocator, by the caller's contract.
        unsafe { tikv_jemallocator::usable_size(block) }
    }

    fn prepare_sizes(&self) -> bool {
        size_class::agrees()
    }

    #[inline]
    unsafe fn prepared_size(&self, _block: *const u8, layout: Layout) -> Option<usize> {
        size_class::usable_size(layout)
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        advance()?;
        let active = figure(c"stats.active")?;
        let metadata = figure(c"stats.metadata")?;
        // Pages with live blocks, pages without, and jemalloc's own: its upper bound of physical
        // memory.
        let resident = figure(c"stats.resident")?;
        Some(HeapStatistics {
            resident: Some(resident),
            bookkeeping: metadata,
            page_cache: resident.saturating_sub(active).saturating_sub(metadata),
            rest: HeapRest::BinUnused,
            ..HeapStatistics::new("jemalloc", resident)
        })
    }

    fn release_unused(&self) {
        purge();
    }
}

/// Releases the pages without blocks of all arenas to the system.
fn purge() {
    // The number 4096 means all arenas: `MALLCTL_ARENAS_ALL`.
    let name = c"arena.4096.purge".as_ptr();
    let none = ptr::null_mut();
    // SAFETY: a command that reads and writes no value.
    unsafe { tikv_jemalloc_sys::mallctl(name, none, ptr::null_mut(), none, 0) };
}

/// Updates jemalloc's statistics, which it answers from a cached copy.
fn advance() -> Option<()> {
    let mut epoch = 1_u64;
    // SAFETY: `epoch` holds a 64-bit number.
    let result = unsafe {
        tikv_jemalloc_sys::mallctl(
            c"epoch".as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            (&raw mut epoch).cast(),
            size_of::<u64>(),
        )
    };
    (result == 0).then_some(())
}

/// Returns one statistic in bytes, or `None` if jemalloc was built without statistics.
fn figure(name: &CStr) -> Option<u64> {
    let mut bytes = 0_usize;
    let mut length = size_of::<usize>();
    // SAFETY: the statistics queried here have the type `size_t`, and `length` is its size.
    let result = unsafe {
        tikv_jemalloc_sys::mallctl(
            name.as_ptr(),
            (&raw mut bytes).cast(),
            &raw mut length,
            ptr::null_mut(),
            0,
        )
    };
    (result == 0).then_some(bytes as u64)
}

//! Implements `UsableSize` for jemalloc, by the crate `tikv-jemallocator` 0.7.
#![expect(unsafe_code, reason = "asks about blocks, and for statistics")]

use core::alloc::Layout;
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use std::alloc::GlobalAlloc;

use tikv_jemallocator::Jemalloc;

use super::size_class::{self, ALIGN, LARGEST, LARGEST_COMPUTED};
use crate::allocator::statistics::{HeapRest, HeapStatistics};
use crate::allocator::usable_size::UsableSize;

/// True if the sizes of blocks up to [`LARGEST_COMPUTED`] are known to be those of their classes.
static HAS_CLASSES: AtomicBool = AtomicBool::new(false);

// SAFETY: a block's usable size is the size of its size class. It keeps that class until it is
// reallocated, also in place. Size classes of at least 16 bytes are multiples of 16, and blocks of
// a class lie side by side.
unsafe impl UsableSize for Jemalloc {
    const ALIGN: usize = ALIGN;
    const READS_HEADER: bool = false;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // Relaxed: it is set before any other thread may rely on it, or a query answers.
        let computed = size_class::computed_size(layout).filter(|_| HAS_CLASSES.load(Relaxed));
        // SAFETY: a live block of this allocator, by the caller's contract.
        computed.unwrap_or_else(|| unsafe { tikv_jemallocator::usable_size(block) })
    }

    fn prepare_sizes(&self) -> bool {
        // SAFETY: it only computes, and the size is not 0.
        let class_of = |size| Some(unsafe { tikv_jemalloc_sys::nallocx(size, 0) });
        let agrees = |largest, sizes: [usize; 4]| {
            size_class::agrees(largest, class_of) && sizes.into_iter().all(agrees_with_block)
        };
        let is_prepared = agrees(LARGEST, [24, 100, 1000, LARGEST]);
        let has_classes = is_prepared && agrees(LARGEST_COMPUTED, [4000, 5000, 16_000, 32_000]);
        HAS_CLASSES.store(has_classes, Relaxed);
        is_prepared
    }

    #[inline]
    unsafe fn prepared_size(&self, _block: *const u8, layout: Layout) -> Option<usize> {
        size_class::usable_size(layout)
    }

    #[inline]
    unsafe fn prepared_size_from_16(&self, _block: *const u8, layout: Layout) -> Option<usize> {
        size_class::usable_size_from_16(layout)
    }

    fn prepared_class(&self, size: usize) -> Option<usize> {
        size_class::usable_size(Layout::from_size_align(size, 1).ok()?)
    }

    #[inline]
    unsafe fn counted_dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.align() > ALIGN || layout.align() > layout.size() {
            // SAFETY: the caller's contract.
            return unsafe { dealloc_aligned(block, layout) };
        }
        // SAFETY: a live block of this size, which was requested without an alignment.
        unsafe { tikv_jemalloc_sys::sdallocx(block.cast(), layout.size(), 0) };
    }

    #[inline]
    unsafe fn prepared_dealloc(&self, block: *mut u8, _layout: Layout, usable: usize) {
        // SAFETY: a live block. It has a prepared size, so its alignment is at most that of its
        // size class, and `sdallocx` takes every size from the requested to the usable one.
        unsafe { tikv_jemalloc_sys::sdallocx(block.cast(), usable, 0) };
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

/// Frees a block that was requested with an alignment. Apart, so that the others need not compute
/// one.
///
/// # Safety
///
/// The same as `GlobalAlloc::dealloc`.
#[cold]
#[inline(never)]
unsafe fn dealloc_aligned(block: *mut u8, layout: Layout) {
    // SAFETY: the caller's contract.
    unsafe { Jemalloc.dealloc(block, layout) };
}

/// Returns whether a new block of this size has the usable size that jemalloc computes.
fn agrees_with_block(size: usize) -> bool {
    // SAFETY: the size is not 0.
    let block = unsafe { tikv_jemalloc_sys::mallocx(size, 0) };
    if block.is_null() {
        return false;
    }
    // SAFETY: live until the last line.
    let usable = unsafe { tikv_jemalloc_sys::sallocx(block, 0) };
    // SAFETY: from `mallocx`, and not used after this.
    unsafe { tikv_jemalloc_sys::dallocx(block, 0) };
    // SAFETY: it only computes, and the size is not 0.
    usable == unsafe { tikv_jemalloc_sys::nallocx(size, 0) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_from_layouts_equal_the_query() {
        size_class::tests::sizes_from_layouts_equal_the_query(&Jemalloc);
    }

    #[test]
    fn a_resized_block_has_the_size_of_its_new_layout() {
        size_class::tests::a_resized_block_has_the_size_of_its_new_layout(&Jemalloc);
    }
}

//! Implements `UsableSize` for mimalloc, by the crate `mimalloc` 0.1.
#![expect(unsafe_code, reason = "asks about blocks, and for statistics")]

use core::alloc::Layout;
use core::ptr;
use std::alloc::GlobalAlloc;

use libmimalloc_sys::{mi_free, mi_good_size, mi_malloc, mi_realloc, mi_usable_size, mi_zalloc};
use mimalloc::MiMalloc;

use super::size_class::{self, ALIGN};
use crate::allocator::statistics::HeapStatistics;
use crate::allocator::usable_size::UsableSize;

// SAFETY: a block's usable size reaches to the end of its slot in the page, and stays the same
// until the block is reallocated. Slots for at least 16 bytes have 16 or more. A block with a
// larger alignment begins inside its slot.
//
// `MiMalloc::alloc` requests an alignment of each block, and mimalloc then takes a slot of the next
// size wherever none of the right size is free. Its `realloc` keeps a block that is up to twice as
// large. So the functions for counted blocks request no alignment, which every block of 16 bytes
// has anyway, and keep a block only if its size is that of its new layout. These sizes are those of
// jemalloc's classes.
unsafe impl UsableSize for MiMalloc {
    const ALIGN: usize = ALIGN;
    const READS_HEADER: bool = false;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of this allocator, by the caller's contract.
        unsafe { self.usable_size(block) }
    }

    fn prepare_sizes(&self) -> bool {
        // SAFETY: it only computes.
        let class_of = |size| Some(unsafe { mi_good_size(size) });
        size_class::agrees(size_class::LARGEST, class_of)
            && [24, 100, 1000, 3584].into_iter().all(agrees_with_block)
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
    unsafe fn counted_alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > ALIGN {
            // SAFETY: the caller's contract.
            return unsafe { self.alloc(layout) };
        }
        // SAFETY: any size may be requested.
        unsafe { mi_malloc(aligned_size(layout)) }.cast()
    }

    #[inline]
    unsafe fn counted_alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() > ALIGN {
            // SAFETY: the caller's contract.
            return unsafe { self.alloc_zeroed(layout) };
        }
        // SAFETY: any size may be requested.
        unsafe { mi_zalloc(aligned_size(layout)) }.cast()
    }

    unsafe fn counted_realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() > ALIGN {
            // SAFETY: the caller's contract.
            return unsafe { self.realloc(block, layout, new_size) };
        }
        // SAFETY: the caller of `realloc` vouches that the size fits the alignment.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let Some(usable) = size_class::usable_size(new) else {
            // SAFETY: a live block. The size of the result is queried.
            return unsafe { mi_realloc(block.cast(), aligned_size(new)) }.cast();
        };
        // SAFETY: a live block.
        if unsafe { self.usable_size(block) } == usable {
            return block;
        }
        // SAFETY: any size may be requested.
        let moved: *mut u8 = unsafe { mi_malloc(aligned_size(new)) }.cast();
        if !moved.is_null() {
            // SAFETY: both blocks have this many bytes, and the new one is another.
            unsafe { ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size)) };
            // SAFETY: a live block, which is not used after this.
            unsafe { mi_free(block.cast()) };
        }
        moved
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

/// Returns the bytes to request for a layout of at most [`ALIGN`]: a block has the alignment of the
/// largest power of two up to its size, up to 16.
#[inline(always)]
fn aligned_size(layout: Layout) -> usize {
    layout.size().max(layout.align())
}

/// Returns whether a new block of this size has the usable size that mimalloc computes.
fn agrees_with_block(size: usize) -> bool {
    // SAFETY: any size may be requested.
    let block = unsafe { mi_malloc(size) };
    if block.is_null() {
        return false;
    }
    // SAFETY: live until the last line.
    let usable = unsafe { mi_usable_size(block) };
    // SAFETY: a live block, which is not used after this.
    unsafe { mi_free(block) };
    // SAFETY: it only computes.
    usable == unsafe { mi_good_size(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_from_layouts_equal_the_query() {
        size_class::tests::sizes_from_layouts_equal_the_query(&MiMalloc);
    }

    #[test]
    fn a_resized_block_has_the_size_of_its_new_layout() {
        size_class::tests::a_resized_block_has_the_size_of_its_new_layout(&MiMalloc);
    }

    #[test]
    fn many_blocks_of_a_layout_have_one_size() {
        // As long as pages have free slots, any way of allocating agrees.
        for size in [24, 72, 80, 300, 1000, 1030, 2900, 3584] {
            let layout = Layout::from_size_align(size, 8).expect("it fits");
            let blocks: Vec<*mut u8> = std::iter::repeat_with(|| {
                // SAFETY: the size is not 0.
                unsafe { MiMalloc.counted_alloc(layout) }
            })
            .take(10_000)
            .collect();
            for block in blocks {
                // SAFETY: a live block.
                let usable = unsafe { MiMalloc.usable_size(block) };
                assert_eq!(size_class::usable_size(layout), Some(usable), "{layout:?}");
                // SAFETY: not used after this.
                unsafe { MiMalloc.dealloc(block, layout) };
            }
        }
    }

    #[test]
    fn contents_survive_every_way_of_resizing() {
        let mut layout = Layout::from_size_align(40, 8).expect("it fits");
        // SAFETY: the size is not 0.
        let mut block = unsafe { MiMalloc.counted_alloc_zeroed(layout) };
        // In place, a larger class, a large block, back, a smaller class, a few bytes.
        for size in [48, 300, 9_000, 3_000, 100, 5, 64] {
            let common = layout.size().min(size);
            // SAFETY: the block has these bytes.
            unsafe { block.write_bytes(7, layout.size()) };
            // SAFETY: a live block of this layout; the size is not 0.
            block = unsafe { MiMalloc.counted_realloc(block, layout, size) };
            layout = Layout::from_size_align(size, 8).expect("it fits");
            // SAFETY: the block has these bytes, and they are written.
            let bytes = unsafe { std::slice::from_raw_parts(block, common) };
            assert!(bytes.iter().all(|byte| *byte == 7), "{size}");
        }
        // SAFETY: not used after this.
        unsafe { MiMalloc.dealloc(block, layout) };
    }
}

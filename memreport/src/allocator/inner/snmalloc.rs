//! Implements `UsableSize` for snmalloc, by the crate `snmalloc-rs` 0.7.
#![expect(unsafe_code, reason = "asks about blocks")]

use core::alloc::Layout;
use std::alloc::GlobalAlloc;

use snmalloc_rs::SnMalloc;

use super::size_class;
use crate::allocator::statistics::HeapStatistics;
use crate::allocator::usable_size::UsableSize;

// SAFETY: a block's usable size is the size of its size class, of at least 16 bytes. It keeps that
// class until it is reallocated, also in place. Classes are multiples of 16, and blocks of a class
// lie side by side.
unsafe impl UsableSize for SnMalloc {
    const ALIGN: usize = size_class::ALIGN;
    const LEAST_IS_16: bool = true;
    const READS_HEADER: bool = false;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // It is `None` for null alone.
        self.usable_size(block).unwrap_or(layout.size())
    }

    fn prepare_sizes(&self) -> bool {
        size_of_block(1) == Some(16) && size_class::agrees(size_class::LARGEST, size_of_block)
    }

    #[inline]
    unsafe fn prepared_size(&self, _block: *const u8, layout: Layout) -> Option<usize> {
        size_class::usable_size_from_16(layout)
    }

    #[inline]
    unsafe fn prepared_size_from_16(&self, _block: *const u8, layout: Layout) -> Option<usize> {
        size_class::usable_size_from_16(layout)
    }

    fn prepared_class(&self, size: usize) -> Option<usize> {
        size_class::usable_size_from_16(Layout::from_size_align(size, 1).ok()?)
    }

    /// Returns the bytes that snmalloc has of the system; how many are resident is not known.
    fn statistics(&self) -> Option<HeapStatistics> {
        let bytes = SnMalloc::memory_stats().current_memory_usage;
        (bytes > 0).then(|| HeapStatistics::new("snmalloc", bytes as u64))
    }
}

/// Returns the usable size of a new block of this size.
fn size_of_block(size: usize) -> Option<usize> {
    let layout = Layout::from_size_align(size, 1).ok()?;
    // SAFETY: the size is not 0.
    let block = unsafe { SnMalloc.alloc(layout) };
    let usable = SnMalloc.usable_size(block);
    if usable.is_some() {
        // SAFETY: a live block, which is not used after this.
        unsafe { SnMalloc.dealloc(block, layout) };
    }
    usable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_from_layouts_equal_the_query() {
        size_class::tests::sizes_from_layouts_equal_the_query(&SnMalloc);
    }

    #[test]
    fn a_resized_block_has_the_size_of_its_new_layout() {
        size_class::tests::a_resized_block_has_the_size_of_its_new_layout(&SnMalloc);
    }
}

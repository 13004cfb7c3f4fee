//! Defines `UsableSize`, the size query of a global allocator, and the wrappers that forward it.
#![expect(unsafe_code, reason = "a global allocator and its size query are unsafe by nature")]

use core::alloc::Layout;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;
use std::alloc::GlobalAlloc;

use super::counters;
use super::statistics::HeapStatistics;

/// An allocator that reports the usable size of its blocks.
///
/// # Safety
///
/// `usable_size` returns at least the layout's size, and at most the distance to the next block. It
/// returns the same number for as long as the block lives. Blocks that were requested with at least
/// 16 bytes start at a multiple of [`ALIGN`](Self::ALIGN). Live blocks of at least 16 bytes, or 24
/// if [`SPACING`](Self::SPACING) is 32, never start within the same aligned `SPACING` bytes. With
/// [`LEAST_IS_16`](Self::LEAST_IS_16) all this is true of blocks for which fewer bytes were
/// requested, too.
#[diagnostic::on_unimplemented(
    message = "the usable sizes of the blocks of `{Self}` are not known: `UsableSize` is not implemented",
    label = "`UsableSize` is not implemented for `{Self}`",
    note = "jemalloc, mimalloc or snmalloc: enable the feature of that name of `memreport`, or of `memreport-dmd` with DMD",
    note = "your own allocator: implement `memreport::UsableSize`"
)]
pub unsafe trait UsableSize: GlobalAlloc {
    /// The least distance in bytes between the starts of blocks of at least 16 bytes: 16, or 32
    /// if blocks of 24 bytes take 32.
    const SPACING: usize = 16;

    /// The bytes that blocks of at least 16 bytes are aligned to without a request for it: 8 or 16,
    /// and at least half of [`SPACING`](Self::SPACING).
    const ALIGN: usize = Self::SPACING / 2;

    /// True if every block has at least 16 usable bytes, however few were requested. DMD then
    /// passes small requests on as they are. Otherwise it requests at least 16 bytes.
    const LEAST_IS_16: bool = false;

    /// True if the size of a block is read from the word before it, which is worth a prefetch then.
    const READS_HEADER: bool = true;

    /// True if the usable bytes of each block are those that the C library's `malloc_usable_size`
    /// returns for it. They are read from the word before the block then, without a call, where
    /// the C library has been found to keep them there.
    const IS_MALLOC: bool = false;

    /// Returns the usable bytes of a block, slop included.
    ///
    /// # Safety
    ///
    /// `block` is a live block of this allocator. `layout` is its current layout, with an alignment
    /// of 16 instead of a smaller one perhaps, or the layout of `()` if unknown.
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize;

    /// Prepares [`prepared_size`](Self::prepared_size), and returns whether it may be called from
    /// now on.
    ///
    /// Called at the first block of the process, also on several threads at once. It may use the
    /// allocator's own functions, but not the program's global allocator.
    fn prepare_sizes(&self) -> bool {
        false
    }

    /// Returns the same as [`usable_size`](Self::usable_size) if there is a faster way. Returns
    /// `None` if it takes a query, which needs no layout. Allocators that count blocks call it for
    /// each block that is allocated and freed.
    ///
    /// # Safety
    ///
    /// [`prepare_sizes`](Self::prepare_sizes) has returned `true`. `block` is a live block of this
    /// allocator. `layout` is the one of the call that allocated or last resized it.
    #[inline]
    unsafe fn prepared_size(&self, _block: *const u8, _layout: Layout) -> Option<usize> {
        None
    }

    /// Returns the same of a block that was requested with at least 16 bytes, though `layout` may
    /// have fewer: with the larger of both. An allocator that has it spares DMD to keep the larger
    /// layout.
    ///
    /// # Safety
    ///
    /// The same as [`prepared_size`](Self::prepared_size), but for the layout.
    #[inline]
    unsafe fn prepared_size_from_16(&self, block: *const u8, layout: Layout) -> Option<usize> {
        let size = layout.size().max(16);
        // SAFETY: it is the same layout, or one of 16 bytes, which fits every alignment that a
        // layout of one byte can have.
        let layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the caller's contract.
        unsafe { self.prepared_size(block, layout) }
    }

    /// Returns the usable bytes of each block that is requested with this many bytes and an
    /// alignment of at most 16, if all have the same. DMD then knows them of most blocks without
    /// a call for each.
    ///
    /// Called after [`prepare_sizes`](Self::prepare_sizes) has returned `true`.
    fn prepared_class(&self, _size: usize) -> Option<usize> {
        None
    }

    /// Allocates a block. Allocators that count blocks call it instead of `alloc`. It differs where
    /// `alloc` returns blocks of several sizes for one layout, which [`prepared_size`] then would
    /// not know. An allocator that passes on [`prepared_size`] also passes on this function and the
    /// three below.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::alloc`.
    ///
    /// [`prepared_size`]: Self::prepared_size
    #[inline]
    unsafe fn counted_alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { self.alloc(layout) }
    }

    /// Allocates a block of zeros. See [`counted_alloc`](Self::counted_alloc).
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::alloc_zeroed`.
    #[inline]
    unsafe fn counted_alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { self.alloc_zeroed(layout) }
    }

    /// Frees a block. See [`counted_alloc`](Self::counted_alloc).
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`.
    #[inline]
    unsafe fn counted_dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { self.dealloc(block, layout) }
    }

    /// Frees a block as [`counted_dealloc`](Self::counted_dealloc) does. An allocator may use
    /// `usable` in place of the layout's size.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::dealloc`. `usable` is the block's
    /// [`prepared_size`](Self::prepared_size).
    #[inline]
    unsafe fn prepared_dealloc(&self, block: *mut u8, layout: Layout, _usable: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.counted_dealloc(block, layout) }
    }

    /// Resizes a block. See [`counted_alloc`](Self::counted_alloc).
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::realloc`.
    #[inline]
    unsafe fn counted_realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { self.realloc(block, layout, new_size) }
    }

    /// Returns the allocator's statistics, if it has any. Called between reporters; it may take
    /// locks of its own.
    fn statistics(&self) -> Option<HeapStatistics> {
        None
    }

    /// Releases free memory that the allocator caches to the system, where it has a function for
    /// that.
    fn release_unused(&self) {}
}

/// An allocator without a size query. The layout of a block stands in, so slop is not counted.
///
/// It requests an alignment of at least 8.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayoutSizes<A>(pub A);

/// Returns the layout to request. All calls for a block round alike.
fn aligned(layout: Layout) -> Layout {
    // Fails only for sizes near the end of the address space, which no allocator serves.
    layout.align_to(8).unwrap_or(layout)
}

// SAFETY: every call is passed through, with layouts that are rounded alike.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LayoutSizes<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        unsafe { self.0.alloc(aligned(layout)) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        unsafe { self.0.alloc_zeroed(aligned(layout)) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is passed through.
        unsafe { self.0.dealloc(block, aligned(layout)) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let aligned = aligned(layout);
        if Layout::from_size_align(new_size, aligned.align()).is_err() {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller's contract is passed through, and the size fits the alignment.
        unsafe { self.0.realloc(block, aligned, new_size) }
    }
}

// SAFETY: the requested bytes may always be used, blocks do not overlap, and all are aligned to 8.
unsafe impl<A: GlobalAlloc> UsableSize for LayoutSizes<A> {
    const READS_HEADER: bool = false;

    unsafe fn usable_size(&self, _block: *const u8, layout: Layout) -> usize {
        layout.size()
    }

    fn prepare_sizes(&self) -> bool {
        true
    }

    #[inline]
    unsafe fn prepared_size(&self, _block: *const u8, layout: Layout) -> Option<usize> {
        Some(layout.size())
    }
}

/// An allocator that counts blocks and bytes and does nothing else.
/// [`global_allocator!`](crate::global_allocator) declares one.
#[derive(Debug, Default)]
pub struct Counted<A> {
    inner: A,
    /// The result of `prepare_sizes`: one of the constants below.
    prepared: AtomicU8,
}

const UNDECIDED: u8 = 0;
const PREPARED: u8 = 1;
const UNPREPARED: u8 = 2;

impl<A> Counted<A> {
    /// Wraps `inner` and counts its blocks.
    pub const fn new(inner: A) -> Self {
        Counted { inner, prepared: AtomicU8::new(UNDECIDED) }
    }
}

// SAFETY: every call goes to the inner allocator with unchanged arguments. Counting neither
// allocates nor panics.
unsafe impl<A: UsableSize> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        let block = unsafe { self.inner.counted_alloc(layout) };
        // SAFETY: fresh from the inner allocator.
        unsafe { self.count_allocated(block, layout) };
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        let block = unsafe { self.inner.counted_alloc_zeroed(layout) };
        // SAFETY: fresh from the inner allocator.
        unsafe { self.count_allocated(block, layout) };
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block lives until the next line.
        counters::freed(unsafe { self.size(block, layout) });
        // SAFETY: the caller's contract is passed through.
        unsafe { self.inner.counted_dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the block lives until the next line.
        let before = unsafe { self.size(block, layout) };
        // SAFETY: the caller's contract is passed through.
        let moved = unsafe { self.inner.counted_realloc(block, layout, new_size) };
        if !moved.is_null() {
            counters::freed(before);
            // SAFETY: the caller of `realloc` vouches that the size fits the alignment.
            let layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
            // SAFETY: fresh from the inner allocator.
            unsafe { self.count_allocated(moved, layout) };
        }
        moved
    }
}

impl<A: UsableSize> Counted<A> {
    /// Returns the usable bytes of a block.
    ///
    /// # Safety
    ///
    /// `block` is a live block of the inner allocator, allocated or resized with this layout.
    #[inline]
    unsafe fn size(&self, block: *const u8, layout: Layout) -> usize {
        // Relaxed: threads that prepare at the same time get the same result.
        let is_prepared = match self.prepared.load(Relaxed) {
            PREPARED => true,
            UNPREPARED => false,
            _ => self.prepare(),
        };
        let size = if is_prepared {
            // SAFETY: prepared, and the caller's contract.
            unsafe { self.inner.prepared_size(block, layout) }
        } else {
            None
        };
        // SAFETY: the caller's contract.
        size.unwrap_or_else(|| unsafe { self.inner.usable_size(block, layout) })
    }

    #[cold]
    fn prepare(&self) -> bool {
        let is_prepared = self.inner.prepare_sizes();
        self.prepared.store(if is_prepared { PREPARED } else { UNPREPARED }, Relaxed);
        is_prepared
    }

    /// Counts a new block.
    ///
    /// # Safety
    ///
    /// `block` is null or a new block of the inner allocator, made with this layout.
    #[inline]
    unsafe fn count_allocated(&self, block: *mut u8, layout: Layout) {
        if !block.is_null() {
            // SAFETY: live, by the caller's contract.
            counters::allocated(unsafe { self.size(block, layout) });
        }
    }
}

// SAFETY: the inner allocator answers about its own blocks.
unsafe impl<A: UsableSize> UsableSize for Counted<A> {
    const SPACING: usize = A::SPACING;
    const ALIGN: usize = A::ALIGN;
    const LEAST_IS_16: bool = A::LEAST_IS_16;
    const READS_HEADER: bool = A::READS_HEADER;
    const IS_MALLOC: bool = A::IS_MALLOC;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        if layout.size() == 0 {
            // SAFETY: the caller's contract is passed through; the layout is unknown.
            return unsafe { self.inner.usable_size(block, layout) };
        }
        // SAFETY: the caller's contract.
        unsafe { self.size(block, layout) }
    }

    fn prepare_sizes(&self) -> bool {
        self.inner.prepare_sizes()
    }

    #[inline]
    unsafe fn prepared_size(&self, block: *const u8, layout: Layout) -> Option<usize> {
        // SAFETY: the caller's contract is passed through.
        unsafe { self.inner.prepared_size(block, layout) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        self.inner.statistics()
    }

    fn release_unused(&self) {
        self.inner.release_unused();
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    /// An allocator that refuses alignments below 8.
    struct Aligned;

    // SAFETY: the system's allocator, or null.
    unsafe impl GlobalAlloc for Aligned {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            assert!(layout.align() >= 8);
            // SAFETY: forwarded.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            assert!(layout.align() >= 8);
            // SAFETY: forwarded.
            unsafe { System.dealloc(block, layout) }
        }
    }

    #[test]
    fn layout_sizes_align_every_block_to_8() {
        let allocator = LayoutSizes(Aligned);
        let layout = Layout::from_size_align(17, 1).expect("it fits");
        // SAFETY: the size is not 0.
        let block = unsafe { allocator.alloc(layout) };
        // SAFETY: a live block of this layout, and the new size is not 0.
        let block = unsafe { allocator.realloc(block, layout, 33) };
        let layout = Layout::from_size_align(33, 1).expect("it fits");
        assert!(allocator.prepare_sizes());
        // SAFETY: prepared, and a live block of this layout.
        assert_eq!(unsafe { allocator.prepared_size(block, layout) }, Some(33));
        // SAFETY: as above. No size of these fits an alignment of 8.
        let refused = unsafe { allocator.realloc(block, layout, isize::MAX as usize) };
        assert!(refused.is_null());
        // SAFETY: live, and not used after this.
        unsafe { allocator.dealloc(block, layout) };
    }
}

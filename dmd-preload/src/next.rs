//! The allocator below: the `malloc` that would have served the program without this library.
//!
//! That is glibc's as a rule, called by the names under which glibc exports it besides `malloc`. If
//! another library has a `malloc`, such as a preloaded jemalloc, its functions are called.
#![expect(unsafe_code, reason = "an allocator is unsafe by nature")]

mod choose;
mod chunk;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;

use dmd::__private::ZeroSizedMalloc;
use memreport::{HeapRest, HeapStatistics, UsableSize};

use choose::{Chosen, chosen};

/// The allocator below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next;

/// The largest alignment of blocks of `malloc`.
const USUAL_ALIGN: usize = 16;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

// SAFETY: all functions are of one allocator, which is chosen once. `System` has the same contract.
unsafe impl GlobalAlloc for Next {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let block = match chosen() {
            // SAFETY: functions of C take any size.
            Chosen::Glibc if align <= USUAL_ALIGN => unsafe { __libc_malloc(size) },
            // SAFETY: as above, and the alignment is a power of two.
            Chosen::Glibc => unsafe { __libc_memalign(align, size) },
            // SAFETY: as above.
            Chosen::Other(other) if align <= USUAL_ALIGN => unsafe { (other.malloc)(size) },
            // SAFETY: as above.
            Chosen::Other(other) => unsafe { (other.memalign)(align, size) },
            Chosen::Nothing => std::ptr::null_mut(),
        };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let size = layout.size();
        if layout.align() > USUAL_ALIGN {
            // SAFETY: the caller's contract.
            let block = unsafe { self.alloc(layout) };
            if !block.is_null() {
                // SAFETY: a new block of this size.
                unsafe { block.write_bytes(0, size) };
            }
            return block;
        }
        let block = match chosen() {
            // SAFETY: functions of C take any size.
            Chosen::Glibc => unsafe { __libc_calloc(1, size) },
            // SAFETY: as above.
            Chosen::Other(other) => unsafe { (other.calloc)(1, size) },
            Chosen::Nothing => std::ptr::null_mut(),
        };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        match chosen() {
            // SAFETY: a live block of this allocator, by the caller's contract.
            Chosen::Glibc => unsafe { __libc_free(block.cast()) },
            // SAFETY: as above.
            Chosen::Other(other) => unsafe { (other.free)(block.cast()) },
            Chosen::Nothing => {}
        }
    }

    /// Resizes a block. It keeps the usual alignment only: its layout may be unknown.
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() > USUAL_ALIGN {
            // SAFETY: the caller's contract.
            return unsafe { self.move_aligned(block, layout, size) };
        }
        let moved = match chosen() {
            // SAFETY: a live block of this allocator, by the caller's contract.
            Chosen::Glibc => unsafe { __libc_realloc(block.cast(), size) },
            // SAFETY: as above.
            Chosen::Other(other) => unsafe { (other.realloc)(block.cast(), size) },
            Chosen::Nothing => std::ptr::null_mut(),
        };
        moved.cast()
    }
}

impl Next {
    /// Copies a block with a larger alignment to a new one.
    ///
    /// # Safety
    ///
    /// The same as `GlobalAlloc::realloc`.
    #[cold]
    unsafe fn move_aligned(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the size fits the alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the size is not 0, by the caller's contract.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            let common = size.min(layout.size());
            // SAFETY: both blocks have at least this size.
            unsafe { std::ptr::copy_nonoverlapping(block, moved, common) };
            // SAFETY: live, and not used after this.
            unsafe { self.dealloc(block, layout) };
        }
        moved
    }
}

// SAFETY: functions of C need no layout.
unsafe impl ZeroSizedMalloc for Next {
    const MALLOC: Self = Next;
}

// SAFETY: the allocator that has the block answers. Spacing and alignment are those of
// `System`, which is the C library's malloc or another one in its place.
unsafe impl UsableSize for Next {
    const SPACING: usize = <System as UsableSize>::SPACING;
    const ALIGN: usize = <System as UsableSize>::ALIGN;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: the caller's contract.
        unsafe { choose::usable_size(block) }
    }

    fn prepare_sizes(&self) -> bool {
        matches!(chosen(), Chosen::Glibc) && chunk::has_size_word()
    }

    #[inline]
    unsafe fn prepared_size(&self, block: *const u8, _layout: Layout) -> Option<usize> {
        // SAFETY: a live block of glibc's, whose blocks have such words.
        unsafe { chunk::size_by_word(block) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        if !matches!(chosen(), Chosen::Glibc) {
            return None;
        }
        let mut statistics = UsableSize::statistics(&System)?;
        // Every block is this library's, so what remains are free blocks that threads keep.
        statistics.rest = HeapRest::BinUnused;
        Some(statistics)
    }
}

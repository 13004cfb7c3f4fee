//! Implements `UsableSize` for the C library's malloc.
#![expect(unsafe_code, reason = "asks about blocks, or reads the word before them")]

pub(crate) mod chunk;
pub(crate) mod glibc;

#[cfg(any(unix, windows))]
use core::alloc::Layout;
#[cfg(any(unix, windows))]
use std::alloc::System;

#[cfg(all(unix, not(target_vendor = "apple")))]
use super::statistics::HeapStatistics;
#[cfg(any(unix, windows))]
use super::usable_size::UsableSize;

#[cfg(all(unix, not(target_vendor = "apple")))]
// SAFETY: on these systems `System` is the C library's malloc, whose size query is
// `malloc_usable_size`. glibc's smallest chunk is 32 bytes, and all chunk sizes are multiples of
// 16. The mallocs that are preloaded in its place (jemalloc, tcmalloc, mimalloc, the sanitizers')
// serve 24 bytes with 32.
unsafe impl UsableSize for System {
    const SPACING: usize =
        if cfg!(target_env = "gnu") && size_of::<usize>() == 8 { 32 } else { 16 };
    // The alignment of C's `max_align_t`.
    const ALIGN: usize = 2 * size_of::<usize>();
    const IS_MALLOC: bool = true;

    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of malloc, by the caller's contract.
        unsafe { chunk::usable_size(block) }
    }

    fn prepare_sizes(&self) -> bool {
        chunk::has_size_word()
    }

    #[inline]
    unsafe fn prepared_size(&self, block: *const u8, _layout: Layout) -> Option<usize> {
        // SAFETY: a live block of a malloc that keeps such words, by the caller's contract.
        unsafe { chunk::size_by_word(block) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        statistics()
    }
}

#[cfg(target_vendor = "apple")]
// SAFETY: `System` is the default malloc zone, whose size query is `malloc_size`.
unsafe impl UsableSize for System {
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        // SAFETY: a live block of malloc, by the caller's contract.
        unsafe { libc::malloc_size(block.cast()) }
    }
}

#[cfg(windows)]
// SAFETY: `System` allocates from the process's heap, whose size query is `HeapSize`: the requested
// bytes, which do not overlap. Blocks are aligned to 16, or 8 on 32-bit systems.
unsafe impl UsableSize for System {
    /// Blocks with a greater alignment lie inside a block of the heap: they have the bytes of their
    /// layout.
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        const HEAP_ALIGN: usize = 2 * size_of::<usize>();
        if layout.align() > HEAP_ALIGN {
            return layout.size();
        }
        // SAFETY: a live block of the heap, by the caller's contract.
        match unsafe { windows::size_of_block(block) } {
            // Of an unknown layout, it may be inside a block of the heap.
            usize::MAX => layout.size(),
            size => size,
        }
    }
}

#[cfg(windows)]
mod windows {
    //! The heap of a Windows process.

    use core::ffi::c_void;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn GetProcessHeap() -> *mut c_void;
        fn HeapSize(heap: *mut c_void, flags: u32, block: *const c_void) -> usize;
    }

    /// Returns the requested bytes of a block; `usize::MAX` for an address that is no block's.
    ///
    /// # Safety
    ///
    /// A live block of the process's heap, or an address inside one.
    pub(super) unsafe fn size_of_block(block: *const u8) -> usize {
        // SAFETY: by this function's contract.
        unsafe { HeapSize(GetProcessHeap(), 0, block.cast()) }
    }
}

/// Returns whether the usable bytes of malloc's blocks are in the words before them.
pub(crate) fn has_size_words() -> bool {
    #[cfg(all(unix, not(target_vendor = "apple")))]
    return chunk::has_size_word();
    #[cfg(not(all(unix, not(target_vendor = "apple"))))]
    false
}

/// Returns the usable bytes of a block by the word before it, or `None` if that does not tell.
///
/// # Safety
///
/// `block` is a live block of the C library's malloc, and [`has_size_words`] has returned `true`.
#[inline(always)]
pub(crate) unsafe fn size_by_word(block: *const u8) -> Option<usize> {
    #[cfg(all(unix, not(target_vendor = "apple")))]
    // SAFETY: the caller's contract.
    return unsafe { chunk::size_by_word(block) };
    #[cfg(not(all(unix, not(target_vendor = "apple"))))]
    {
        let _ = block;
        None
    }
}

/// Returns the bytes in blocks of the C library's malloc, with their headers, and with free blocks
/// that threads keep at hand. `None` if it is not glibc's.
#[must_use]
pub fn bytes_in_use() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    return glibc::statistics().map(|statistics| statistics.in_use());
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn statistics() -> Option<HeapStatistics> {
    let statistics = glibc::statistics()?;
    // If another malloc was preloaded, it has the blocks, and glibc's own has next to none. Other
    // threads allocate between the two readings, so bytes in use may be a few less.
    (statistics.in_use() >= super::counters::totals().live_bytes() / 2).then_some(statistics)
}

#[cfg(all(unix, not(target_vendor = "apple"), not(all(target_os = "linux", target_env = "gnu"))))]
fn statistics() -> Option<HeapStatistics> {
    None
}

/// Releases the C library's free memory to the system, where it has a function for that.
pub(crate) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a plain call, allowed on any thread at any time. It also helps if another allocator
    // is declared, because C code has a heap too.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::bytes_in_use;

    #[test]
    #[cfg_attr(miri, ignore = "there is no malloc under Miri")]
    fn a_block_is_in_use_until_it_is_freed() {
        // Other tests allocate and free meanwhile, so some attempts may be far off.
        let mut readings = Vec::new();
        for _ in 0..16 {
            let before = bytes_in_use().expect("the C library is glibc");
            let block = std::hint::black_box(Vec::<u8>::with_capacity(256 << 20));
            let with_block = bytes_in_use().expect("the C library is glibc");
            drop(block);
            let after = bytes_in_use().expect("the C library is glibc");
            if is_close(with_block, before + (256 << 20)) && is_close(after, before) {
                return;
            }
            readings.push([before, with_block, after]);
        }
        panic!("the block of 256 MiB is not in {readings:?}");
    }

    fn is_close(bytes: u64, expected: u64) -> bool {
        bytes.abs_diff(expected) < 64 << 20
    }
}

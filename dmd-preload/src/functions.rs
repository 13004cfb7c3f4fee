//! The functions of C, with the results of glibc's: sizes of 0, overflow, `errno`.
//!
//! They have names of their own here: calls of an exported function would lead to the first one of
//! this name in the process, which is the C library's where this library was loaded later.
//!
//! A block is a layout of Rust's to the tracker. C does not know a block's layout when it frees it;
//! the allocators below need none.
#![expect(unsafe_code, reason = "functions of C take raw pointers")]

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use dmd::__private::keeping_errno;
use memreport::UsableSize;

use crate::declare::TRACKER;
use crate::program;

/// The alignment of blocks without one of their own.
const USUAL_ALIGN: usize = 16;

/// The layout of blocks of which nothing is known.
const UNKNOWN: Layout = Layout::new::<()>();

#[cold]
fn set_errno(error: c_int) {
    // SAFETY: a plain call.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own variable.
    unsafe { errno.write(error) };
}

/// Fails with `ENOMEM`.
#[cold]
fn no_memory() -> *mut c_void {
    set_errno(libc::ENOMEM);
    ptr::null_mut()
}

/// Allocates a block. Fails with `ENOMEM`.
#[inline(always)]
fn allocate<const ZEROED: bool>(size: usize, align: usize) -> *mut c_void {
    let Ok(layout) = Layout::from_size_align(size, align) else { return no_memory() };
    // The tracker's system calls may change it.
    let block = keeping_errno(|| {
        if let Some(hooks) = program::hooks() {
            return hooks.alloc(layout, ZEROED);
        }
        if ZEROED {
            // SAFETY: the tracker rounds a size of 0 up.
            unsafe { TRACKER.alloc_zeroed(layout) }
        } else {
            // SAFETY: as above.
            unsafe { TRACKER.alloc(layout) }
        }
    });
    if block.is_null() { no_memory() } else { block.cast() }
}

/// Allocates a block with the next larger alignment that is a power of two, as glibc does.
fn allocate_aligned(align: usize, size: usize) -> *mut c_void {
    // Larger alignments have no next power of two.
    if align > usize::MAX / 2 + 1 {
        set_errno(libc::EINVAL);
        return ptr::null_mut();
    }
    allocate::<false>(size, align.max(USUAL_ALIGN).next_power_of_two())
}

fn page_size() -> usize {
    // SAFETY: a plain call.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// See malloc(3).
#[inline]
pub(crate) extern "C" fn malloc(size: usize) -> *mut c_void {
    allocate::<false>(size, USUAL_ALIGN)
}

/// See malloc(3).
#[inline]
pub(crate) extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(size) => allocate::<true>(size, USUAL_ALIGN),
        None => no_memory(),
    }
}

/// See malloc(3).
///
/// # Safety
///
/// `block` is null or a live block.
#[inline]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if !block.is_null() {
        keeping_errno(|| match program::hooks() {
            // SAFETY: the caller's contract.
            Some(hooks) => unsafe { hooks.free(block.cast()) },
            // SAFETY: as above.
            None => unsafe { TRACKER.dealloc(block.cast(), UNKNOWN) },
        });
    }
}

/// See malloc(3). A size of 0 frees the block and returns null, as in glibc.
///
/// # Safety
///
/// `block` is null or a live block.
#[inline]
pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return malloc(size);
    }
    if size == 0 {
        // SAFETY: the caller's contract.
        unsafe { free(block) };
        return ptr::null_mut();
    }
    if Layout::from_size_align(size, USUAL_ALIGN).is_err() {
        return no_memory();
    }
    let moved = keeping_errno(|| match program::hooks() {
        // SAFETY: the caller's contract, and the size fits.
        Some(hooks) => unsafe { hooks.realloc(block.cast(), size) },
        // SAFETY: as above.
        None => unsafe { TRACKER.realloc(block.cast(), UNKNOWN, size) },
    });
    if moved.is_null() { no_memory() } else { moved.cast() }
}

/// See malloc(3).
///
/// # Safety
///
/// `block` is null or a live block.
#[inline]
pub(crate) unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's contract.
        Some(size) => unsafe { realloc(block, size) },
        None => no_memory(),
    }
}

/// See `posix_memalign(3)`.
///
/// # Safety
///
/// A pointer may be written to `place`.
#[inline]
pub(crate) unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    align: usize,
    size: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let block = allocate_aligned(align, size);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's contract.
    unsafe { place.write(block) };
    0
}

/// See `aligned_alloc(3)`. An alignment that is not a power of two is an error since glibc 2.38.
#[inline]
pub(crate) extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() && aligned_alloc_is_strict() {
        set_errno(libc::EINVAL);
        return ptr::null_mut();
    }
    allocate_aligned(align, size)
}

/// Returns whether the C library is glibc 2.38 or later.
#[cold]
fn aligned_alloc_is_strict() -> bool {
    // SAFETY: a plain call, which returns a string like 2.36.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: a C string that is never freed.
    let version = unsafe { CStr::from_ptr(version) };
    let minor = version.to_str().ok().and_then(|text| text.strip_prefix("2."));
    minor.and_then(|minor| minor.parse::<u32>().ok()).is_none_or(|minor| minor >= 38)
}

/// See `memalign(3)`.
#[inline]
pub(crate) extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    allocate_aligned(align, size)
}

/// See `valloc(3)`.
#[inline]
pub(crate) extern "C" fn valloc(size: usize) -> *mut c_void {
    allocate_aligned(page_size(), size)
}

/// See `pvalloc(3)`.
#[inline]
pub(crate) extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(page_size()) {
        Some(size) => allocate_aligned(page_size(), size),
        None => no_memory(),
    }
}

/// See `malloc_usable_size(3)`.
///
/// # Safety
///
/// `block` is null or a live block.
#[inline]
pub(crate) unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller's contract.
    unsafe { TRACKER.usable_size(block.cast(), UNKNOWN) }
}

/// Frees a block: `free` of C23.
///
/// # Safety
///
/// `block` is null or a live block.
#[inline]
pub(crate) unsafe extern "C" fn free_sized(block: *mut c_void, _size: usize) {
    // SAFETY: the caller's contract.
    unsafe { free(block) };
}

/// Frees a block: `free` of C23.
///
/// # Safety
///
/// `block` is null or a live block.
#[inline]
pub(crate) unsafe extern "C" fn free_aligned_sized(
    block: *mut c_void,
    _align: usize,
    _size: usize,
) {
    // SAFETY: the caller's contract.
    unsafe { free(block) };
}

/// Frees a block, in programs that were linked to glibc before 2.26.
///
/// # Safety
///
/// `block` is null or a live block.
#[inline]
pub(crate) unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: the caller's contract.
    unsafe { free(block) };
}

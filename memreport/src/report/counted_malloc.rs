//! `malloc` and `free` for libraries of C that take such functions, over a [`CountedHeap`].
//!
//! The functions of C free a block without its size, which Rust's allocator needs: it is in a
//! header of 16 bytes before the block.
#![expect(unsafe_code, reason = "functions of C take raw pointers")]

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr;
use std::alloc::GlobalAlloc;

use super::counted_heap::CountedHeap;

/// The bytes before a block, and its alignment.
const HEADER: usize = 16;

/// Returns the layout of a block with its header.
fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(HEADER)?, HEADER).ok()
}

/// Functions of C, for [`counted_malloc!`](crate::counted_malloc).
#[doc(hidden)]
impl CountedHeap {
    /// See malloc(3).
    pub fn c_malloc(&self, size: usize) -> *mut c_void {
        self.with_header(size, |layout| {
            // SAFETY: the layout has at least the size of the header.
            unsafe { self.alloc(layout) }
        })
    }

    /// See calloc(3).
    pub fn c_calloc(&self, count: usize, size: usize) -> *mut c_void {
        let Some(size) = count.checked_mul(size) else { return ptr::null_mut() };
        self.with_header(size, |layout| {
            // SAFETY: as above.
            unsafe { self.alloc_zeroed(layout) }
        })
    }

    /// See realloc(3). A size of 0 frees the block and returns null.
    ///
    /// # Safety
    ///
    /// `block` is null or a live block of this heap's functions of C.
    pub unsafe fn c_realloc(&self, block: *mut c_void, size: usize) -> *mut c_void {
        if block.is_null() {
            return self.c_malloc(size);
        }
        if size == 0 {
            // SAFETY: the caller's contract.
            unsafe { self.c_free(block) };
            return ptr::null_mut();
        }
        // SAFETY: the caller's contract.
        let old = unsafe { self.c_size(block) };
        let (Some(old), Some(new)) = (layout(old), layout(size)) else { return ptr::null_mut() };
        let start = block.cast::<u8>().wrapping_sub(HEADER);
        self.with_header(size, |_| {
            // SAFETY: the block begins at its header, and was allocated with this layout.
            unsafe { self.realloc(start, old, new.size()) }
        })
    }

    /// See free(3).
    ///
    /// # Safety
    ///
    /// `block` is null or a live block of this heap's functions of C.
    pub unsafe fn c_free(&self, block: *mut c_void) {
        if block.is_null() {
            return;
        }
        // SAFETY: the caller's contract.
        let size = unsafe { self.c_size(block) };
        if let Some(layout) = layout(size) {
            // SAFETY: the block begins at its header, and was allocated with this layout.
            unsafe { self.dealloc(block.cast::<u8>().wrapping_sub(HEADER), layout) };
        }
    }

    /// Returns the size with which a block was requested, or 0 for null.
    ///
    /// # Safety
    ///
    /// `block` is null or a live block of this heap's functions of C.
    #[must_use]
    pub unsafe fn c_size(&self, block: *const c_void) -> usize {
        if block.is_null() {
            return 0;
        }
        let header = block.cast::<u8>().wrapping_sub(HEADER).cast::<usize>();
        // SAFETY: the header of a live block is initialised and aligned.
        unsafe { header.read() }
    }

    fn with_header(&self, size: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> *mut c_void {
        let Some(layout) = layout(size) else { return ptr::null_mut() };
        let start = allocate(layout);
        if start.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: a block of this layout, which has room for the header and is aligned for it.
        unsafe { start.cast::<usize>().write(size) };
        start.wrapping_add(HEADER).cast()
    }
}

/// Declares a module of functions of C that allocate, for a library that takes such functions, and
/// registers the reporter of their blocks.
///
/// The module has the static `HEAP`, a [`CountedHeap`](crate::CountedHeap), and `malloc`,
/// `calloc`, `realloc`, `free` and `size`, which returns a block's requested bytes. `allocate`,
/// `allocate_array` and `release` are the same for libraries that pass a pointer of their own
/// first, such as zlib and zstd. Each block has 16 bytes more than was requested, which count.
///
/// ```
/// memreport::counted_malloc! {
///     /// The heap of an imaginary library.
///     mod image_heap: "explicit/images", "Decoded images of the library.";
/// }
///
/// # fn main() {
/// let block = unsafe { image_heap::malloc(1000) };
/// assert!(image_heap::HEAP.live_bytes() >= 1016);
/// let snapshot = memreport::snapshot();
/// let report = snapshot.reports.iter().find(|report| report.path == "explicit/images").unwrap();
/// assert!(report.amount >= 1016);
/// unsafe { image_heap::free(block) };
/// assert_eq!(image_heap::HEAP.live_bytes(), 0);
/// # }
/// ```
#[macro_export]
macro_rules! counted_malloc {
    ($(#[$doc:meta])* $visible:vis mod $name:ident: $path:literal, $description:literal $(;)?) => {
        $(#[$doc])*
        #[allow(dead_code, unsafe_code, reason = "libraries take some of the functions")]
        $visible mod $name {
            use ::core::ffi::{c_int, c_uint, c_void};

            /// Counts the blocks of the functions below.
            pub static HEAP: $crate::CountedHeap = $crate::CountedHeap::new($path, $description);

            $crate::__private::submit! {
                $crate::__private::StaticReporter::new($path, |reports| {
                    $crate::Reporter::collect(&HEAP, reports);
                })
            }

            /// Allocates a block of `size` bytes. Returns null if there is no memory.
            ///
            /// # Safety
            ///
            /// Any size is allowed. It is unsafe only to have the type of C's function.
            pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
                HEAP.c_malloc(size)
            }

            /// Allocates `count` times `size` bytes of zeros. Returns null if there is no memory.
            ///
            /// # Safety
            ///
            /// Any size is allowed. It is unsafe only to have the type of C's function.
            pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
                HEAP.c_calloc(count, size)
            }

            /// Resizes a block. Returns null if there is no memory, or `size` is 0.
            ///
            /// # Safety
            ///
            /// `block` is null or a live block of this module.
            pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
                // SAFETY: the caller's contract.
                unsafe { HEAP.c_realloc(block, size) }
            }

            /// Frees a block.
            ///
            /// # Safety
            ///
            /// `block` is null or a live block of this module.
            pub unsafe extern "C" fn free(block: *mut c_void) {
                // SAFETY: the caller's contract.
                unsafe { HEAP.c_free(block) };
            }

            /// Returns the requested bytes of a block, as `xSize` of SQLite.
            ///
            /// # Safety
            ///
            /// `block` is null or a live block of this module.
            pub unsafe extern "C" fn size(block: *mut c_void) -> c_int {
                // SAFETY: the caller's contract.
                c_int::try_from(unsafe { HEAP.c_size(block) }).unwrap_or(c_int::MAX)
            }

            /// The same as [`malloc`], as `ZSTD_allocFunction`.
            ///
            /// # Safety
            ///
            /// Any size is allowed. It is unsafe only to have the type of C's function.
            pub unsafe extern "C" fn allocate(_own: *mut c_void, size: usize) -> *mut c_void {
                HEAP.c_malloc(size)
            }

            /// The same as [`calloc`], as `alloc_func` of zlib.
            ///
            /// # Safety
            ///
            /// Any size is allowed. It is unsafe only to have the type of C's function.
            pub unsafe extern "C" fn allocate_array(
                _own: *mut c_void,
                count: c_uint,
                size: c_uint,
            ) -> *mut c_void {
                HEAP.c_calloc(count as usize, size as usize)
            }

            /// The same as [`free`], as `ZSTD_freeFunction` and `free_func` of zlib.
            ///
            /// # Safety
            ///
            /// `block` is null or a live block of this module.
            pub unsafe extern "C" fn release(_own: *mut c_void, block: *mut c_void) {
                // SAFETY: the caller's contract.
                unsafe { HEAP.c_free(block) };
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    static HEAP: CountedHeap = CountedHeap::new("explicit/tests", "Blocks of tests.");

    fn bytes(block: *mut c_void, size: usize) -> Vec<u8> {
        // SAFETY: a live block of this size, whose bytes the test has written.
        unsafe { core::slice::from_raw_parts(block.cast::<u8>(), size) }.to_vec()
    }

    #[test]
    fn blocks_keep_their_bytes_and_are_counted_until_they_are_freed() {
        let block = HEAP.c_calloc(3, 5);
        assert_eq!(bytes(block, 15), [0; 15]);
        assert_eq!(block.addr() % 16, 0);
        assert!(HEAP.live_bytes() >= 31);
        // SAFETY: the block has 15 bytes.
        unsafe { block.cast::<u8>().write_bytes(7, 15) };
        // SAFETY: a live block.
        let block = unsafe { HEAP.c_realloc(block, 4000) };
        assert_eq!(bytes(block, 15), [7; 15]);
        // SAFETY: a live block.
        assert_eq!(unsafe { HEAP.c_size(block) }, 4000);
        assert!(HEAP.live_bytes() >= 4016);
        // SAFETY: a live block, which a size of 0 frees.
        assert!(unsafe { HEAP.c_realloc(block, 0) }.is_null());
        assert_eq!(HEAP.live_bytes(), 0);
    }

    #[test]
    fn sizes_that_do_not_exist_are_refused_and_null_is_nothing() {
        assert!(HEAP.c_malloc(usize::MAX - 3).is_null());
        assert!(HEAP.c_calloc(usize::MAX, 2).is_null());
        // SAFETY: null is allowed.
        unsafe { HEAP.c_free(ptr::null_mut()) };
        // SAFETY: null is allowed.
        assert_eq!(unsafe { HEAP.c_size(ptr::null()) }, 0);
        // SAFETY: null is allowed: it allocates.
        let block = unsafe { HEAP.c_realloc(ptr::null_mut(), 1) };
        // SAFETY: a live block; a failed resize keeps it.
        assert!(unsafe { HEAP.c_realloc(block, usize::MAX - 3) }.is_null());
        // SAFETY: a live block.
        unsafe { HEAP.c_free(block) };
    }
}

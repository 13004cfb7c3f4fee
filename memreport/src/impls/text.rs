//! Measures text and paths: each owns one block with spare capacity. *Exact.*
#![expect(unsafe_code, reason = "vouches for the block that each of these owns")]

use alloc::ffi::CString;
use alloc::string::String;
use core::alloc::Layout;
#[cfg(feature = "std")]
use std::{ffi::OsString, path::PathBuf};

use crate::{Lookahead, MallocShallowSizeOf, MallocSizeOf, Ops};

impl MallocSizeOf for String {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: a string is a vector of bytes, and `as_ptr` is its start.
        unsafe { bytes(ops, self.as_ptr(), self.capacity()) };
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.block(self.as_ptr());
    }
}

#[cfg(feature = "std")]
impl MallocSizeOf for OsString {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: on every platform of std, it is a vector of bytes, and the encoded bytes begin at
        // its start.
        unsafe { bytes(ops, self.as_encoded_bytes().as_ptr(), self.capacity()) };
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.block(self.as_encoded_bytes().as_ptr());
    }
}

#[cfg(feature = "std")]
impl MallocSizeOf for PathBuf {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let start = self.as_os_str().as_encoded_bytes().as_ptr();
        // SAFETY: a path owns an `OsString`, for which the same holds.
        unsafe { bytes(ops, start, self.capacity()) };
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.block(self.as_os_str().as_encoded_bytes().as_ptr());
    }
}

impl MallocSizeOf for CString {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let text = self.as_bytes_with_nul();
        // SAFETY: it owns a boxed slice of exactly these bytes.
        unsafe { bytes(ops, text.as_ptr(), text.len()) };
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        ahead.block(self.as_ptr());
    }
}

/// Counts a vector of bytes.
///
/// # Safety
///
/// Unless the capacity is 0, `start` is the start of a live block for that many bytes.
#[inline]
unsafe fn bytes(ops: &Ops<'_>, start: *const u8, capacity: usize) {
    // A capacity that was allocated has a layout.
    let Ok(layout) = Layout::array::<u8>(capacity) else { return };
    // SAFETY: the caller's contract is passed through.
    unsafe { ops.block(start, layout) };
}

macro_rules! has_only_own_blocks {
    ($($ty:ty),*) => {$(
        impl MallocShallowSizeOf for $ty {
            #[inline]
            fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
                self.add_size_of_excluding_this(ops);
            }
        }
    )*};
}

has_only_own_blocks!(String, CString);
#[cfg(feature = "std")]
has_only_own_blocks!(OsString, PathBuf);

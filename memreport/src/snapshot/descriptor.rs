//! Moves descriptors out of the program's way.
#![expect(unsafe_code, reason = "a system call")]

use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Gives a descriptor a high number, in a preloaded library.
///
/// Programs expect the lowest numbers for their own files, and close those that they do not know.
#[must_use]
pub fn out_of_the_way(descriptor: OwnedFd) -> OwnedFd {
    const LEAST: c_int = 700;
    if !cfg!(memreport_preload) {
        return descriptor;
    }
    // SAFETY: a live descriptor. If the limit is lower, the call fails.
    let high = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LEAST) };
    if high < 0 {
        return descriptor;
    }
    // SAFETY: the successful call above made it, and nothing else has it.
    unsafe { OwnedFd::from_raw_fd(high) }
}

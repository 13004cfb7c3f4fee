//! Keeps `errno`: the program may be about to read it when a hook or a signal handler runs.
#![expect(unsafe_code, reason = "reads and writes the C library's variable")]

use super::Current;
use super::system::System;

/// Calls `with`, and restores `errno` after it.
#[inline]
pub fn keeping_errno<R>(with: impl FnOnce() -> R) -> R {
    let errno = Current::errno();
    // SAFETY: the address is valid for the life of this thread.
    let before = unsafe { *errno };
    let result = with();
    // SAFETY: as above. The program's code finds it unchanged.
    unsafe { *errno = before };
    result
}

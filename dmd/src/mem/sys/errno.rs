//! Keeps `errno`: the program may be about to read it when a hook or a signal handler runs.
#![expect(unsafe_code, reason = "reads and writes the C library's variable")]

/// Calls `with`, and restores `errno` after it.
#[inline]
pub fn keeping_errno<R>(with: impl FnOnce() -> R) -> R {
    // SAFETY: the address is valid for the life of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: `errno` is valid, see above.
    let before = unsafe { *errno };
    let result = with();
    // SAFETY: `errno` is valid. The program's code finds it unchanged.
    unsafe { *errno = before };
    result
}

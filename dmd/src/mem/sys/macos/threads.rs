//! Threads: their numbers, names and stacks.
#![expect(unsafe_code, reason = "calls the C library")]

use std::io;

use super::{MacOs, kernel};
use crate::mem::sys::errno::keeping_errno;
use crate::mem::sys::stacks::{MAX_NAME, StackBounds, ThreadName};
use crate::mem::sys::system::System;

const _: () = assert!(MAX_NAME == libc::MAXTHREADNAMESIZE);

/// Returns the kernel's number of this thread, which no other has until the machine starts again.
/// The C library has it in the thread's descriptor.
pub(super) fn id() -> u32 {
    let mut id = 0;
    // SAFETY: 0 is this thread, and `id` is valid for the write.
    let error = unsafe { libc::pthread_threadid_np(0, &raw mut id) };
    // Beyond 2^32 threads since the machine started, a thread has no number.
    if error == 0 { u32::try_from(id).unwrap_or(0) } else { 0 }
}

/// Returns whether a thread of this process has this number. `true` if the kernel does not tell.
pub(super) fn exists(id: u32) -> bool {
    keeping_errno(|| {
        // SAFETY: the address is valid for the life of this thread; the value is restored.
        unsafe { *MacOs::errno() = 0 };
        kernel::thread_info(id).is_some()
            || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
    })
}

/// Returns the name of this thread, which the C library has in the thread's descriptor.
pub(super) fn own_name() -> ThreadName {
    let mut name = [0_u8; MAX_NAME];
    // SAFETY: `pthread_self` has no precondition.
    let own = unsafe { libc::pthread_self() };
    // SAFETY: this thread lives, and the name has so many bytes. On failure it stays empty.
    unsafe { libc::pthread_getname_np(own, name.as_mut_ptr().cast(), MAX_NAME) };
    ThreadName(name)
}

/// Returns the name of a thread of this process, if the thread is alive.
pub(super) fn name(id: u32) -> Option<String> {
    let name = kernel::thread_info(id)?.pth_name.map(i8::cast_unsigned);
    Some(String::from_utf8_lossy(ThreadName(name).bytes()).into_owned())
}

/// Returns the bounds of this thread's stack, which the C library has in the thread's descriptor.
pub(super) fn stack_bounds() -> Option<StackBounds> {
    // SAFETY: `pthread_self` has no precondition.
    let own = unsafe { libc::pthread_self() };
    // SAFETY: this thread lives.
    let high = unsafe { libc::pthread_get_stackaddr_np(own) }.addr();
    // SAFETY: as above.
    let size = unsafe { libc::pthread_get_stacksize_np(own) };
    let low = high.checked_sub(size).filter(|low| *low != 0 && size != 0)?;
    Some(StackBounds { low, high })
}

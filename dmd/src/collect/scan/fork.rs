//! Forks a child that has this thread alone, and waits for it.
#![expect(unsafe_code, reason = "forks")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use crate::mem::sys;

/// Runs `work` in a forked child, and waits for it. The child takes no signals.
///
/// On Linux the program does not notice: the child sends no signal when it ends, and runs no
/// handlers for forks. On macOS it does both.
///
/// # Errors
///
/// If the child cannot be made, if `work` returns false, or if it crashes.
pub(super) fn fork(work: impl FnOnce() -> bool) -> io::Result<()> {
    let (mut all, mut before) =
        (MaybeUninit::<libc::sigset_t>::zeroed(), MaybeUninit::<libc::sigset_t>::zeroed());
    // SAFETY: a valid place for the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: sets that are filled in, and a place for the answer.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: the child calls the kernel, and reads memory that no other process writes.
    let child = unsafe { sys::fork() };
    if child == 0 {
        let status = if work() { 0 } else { 1 };
        // SAFETY: ends the child at once, without the program's exit handlers.
        unsafe { libc::_exit(status) };
    }
    let error = io::Error::last_os_error();
    let result = if child < 0 { Err(error) } else { wait_for(child) };
    // SAFETY: the mask that the call above returned.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

fn wait_for(child: libc::pid_t) -> io::Result<()> {
    let mut status = 0;
    loop {
        // SAFETY: a valid place for the answer.
        let ended = unsafe { libc::waitpid(child, &raw mut status, sys::WAIT) };
        if ended == child {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    match status {
        0 => Ok(()),
        _ if libc::WIFEXITED(status) => Err(io::Error::other(
            "the contents of the heap could not be written; is there room among the temporary files?",
        )),
        _ => Err(io::Error::other("the process that was to read the heap has crashed")),
    }
}

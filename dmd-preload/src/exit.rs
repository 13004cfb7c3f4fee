//! The functions that end a program without exit handlers: the tracker's own run first.
#![expect(unsafe_code, reason = "exports functions of C, and ends the process")]

use std::ffi::c_int;

use dmd::__private::before_sudden_exit;

/// See `_exit(2)`. glibc's own `exit` ends the process without a call of this.
#[unsafe(no_mangle)]
extern "C" fn _exit(status: c_int) -> ! {
    before_sudden_exit();
    loop {
        // SAFETY: a system call without pointers.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// See `_Exit(3)`.
#[unsafe(no_mangle)]
extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

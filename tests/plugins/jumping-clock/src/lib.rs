//! Clocks that jump, for a program that preloads this library: the time of day by a day forth and
//! back every two seconds, and the others forward by a minute every ten.
#![expect(unsafe_code, reason = "takes the place of a function of the C library")]

use libc::{c_int, clockid_t, timespec};

const DAY: i64 = 86_400;

/// Reads a clock, as the C library's function of this name does.
///
/// # Safety
///
/// `time` points to a place for a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: by the caller's contract.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) };
    if result != 0 {
        return -1;
    }
    // SAFETY: the kernel has written the time.
    let seconds = unsafe { &mut (*time).tv_sec };
    match clock {
        libc::CLOCK_REALTIME if *seconds / 2 % 2 == 0 => *seconds -= DAY,
        libc::CLOCK_REALTIME => {}
        _ => *seconds += *seconds / 10 * 60,
    }
    0
}

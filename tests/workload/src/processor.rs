//! Pins a thread to a processor, and reads its processor time.
#![expect(unsafe_code, reason = "system calls")]

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Pins this thread to one processor: of those that the process may use, the last but `number`.
///
/// # Errors
///
/// If there are not as many, or the system refuses.
pub(crate) fn pin(number: usize) -> io::Result<()> {
    let allowed = allowed()?;
    let count = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: the set has that many places.
    let mut usable = (0..count).rev().filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &allowed) });
    let Some(cpu) = usable.nth(number) else {
        return Err(io::Error::other(format!("there are no {} processors", number + 1)));
    };
    // SAFETY: all zeros is an empty set.
    let mut one: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the index is within the set.
    unsafe { libc::CPU_SET(cpu, &mut one) };
    // SAFETY: a valid set and its size; 0 is this thread.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&one), &raw const one) })
}

/// Returns the number of processors that the process may use.
///
/// # Errors
///
/// If the system refuses.
pub(crate) fn count() -> io::Result<usize> {
    let allowed = allowed()?;
    // SAFETY: an initialised set.
    Ok(usize::try_from(unsafe { libc::CPU_COUNT(&allowed) }).unwrap_or(1))
}

fn allowed() -> io::Result<libc::cpu_set_t> {
    // SAFETY: all zeros is an empty set.
    let mut allowed: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the set is writable; 0 is this thread.
    check(unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) })?;
    Ok(allowed)
}

/// Returns the processor time of this thread.
///
/// # Errors
///
/// If the system has no such clock.
pub fn time() -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    check(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) })?;
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    Ok(seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0)))
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

//! The process as a whole: its clocks and its resident memory.
#![expect(unsafe_code, reason = "system calls")]

use std::time::Duration;

use super::PAGE;

/// Returns the time since the process started.
pub(crate) fn uptime() -> Duration {
    // Field 22, in clock ticks since boot. Field 2 is the program's name, which may contain blanks.
    let started = || {
        let text = std::fs::read_to_string("/proc/self/stat").ok()?;
        let ticks: f64 =
            text.rsplit_once(") ")?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
        // SAFETY: `sysconf` has no precondition.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Some(ticks / per_second as f64)
    };
    let now = || {
        std::fs::read_to_string("/proc/uptime")
            .ok()?
            .split_ascii_whitespace()
            .next()?
            .parse::<f64>()
            .ok()
    };
    match (started(), now()) {
        (Some(started), Some(now)) => Duration::from_secs_f64((now - started).max(0.0)),
        _ => Duration::ZERO,
    }
}

/// Returns the monotonic clock in nanoseconds. Hooks may read it: it takes no lock, and usually
/// makes no system call.
pub(crate) fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for the write of one `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Returns the resident memory of this process in bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE as u64)
}

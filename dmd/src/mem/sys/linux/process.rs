//! The process as a whole: its clocks and its resident memory.
#![expect(unsafe_code, reason = "system calls")]

#[cfg(target_arch = "aarch64")]
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use super::Linux;
use crate::mem::sys::system::System;

/// Returns the time since the process started.
pub(super) fn uptime() -> Duration {
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
pub(super) fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for the write of one `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Returns the resident memory of this process in bytes.
pub(super) fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * Linux::PAGE as u64)
}

/// Returns whether this processor has a tag for each 16 bytes of memory, which an address must have
/// too in order to read them.
#[cfg(target_arch = "aarch64")]
pub(super) fn tags_memory() -> bool {
    const HWCAP2_MTE: libc::c_ulong = 1 << 18;
    static IS_TAGGING: AtomicU8 = AtomicU8::new(UNKNOWN);
    const UNKNOWN: u8 = 2;
    match IS_TAGGING.load(Relaxed) {
        UNKNOWN => {
            // SAFETY: a plain call.
            let features = unsafe { libc::getauxval(libc::AT_HWCAP2) };
            let is_tagging = features & HWCAP2_MTE != 0;
            IS_TAGGING.store(is_tagging.into(), Relaxed);
            is_tagging
        }
        known => known == 1,
    }
}

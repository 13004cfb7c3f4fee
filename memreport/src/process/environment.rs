//! Reads environment variables, unless the program has privileges that its starter lacks.
//!
//! No other file of this crate reads the environment: `cargo xtask tidy environment`.
#![cfg_attr(
    unix,
    expect(unsafe_code, reason = "reads the kernel's notes about the start of the program")
)]

use std::ffi::OsString;
#[cfg(unix)]
use std::path::PathBuf;

/// Returns the value of a variable, if it is set and may be obeyed.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    if is_privileged() { None } else { std::env::var_os(name) }
}

/// Returns the folder for temporary files.
#[cfg(unix)]
#[must_use]
pub fn temporary_folder() -> PathBuf {
    if is_privileged() { PathBuf::from("/tmp") } else { std::env::temp_dir() }
}

/// The environment variable with which every collection is anonymized.
pub const ANONYMIZE_VARIABLE: &str = "MEMREPORT_ANONYMIZE";

/// Returns whether the environment asks to leave private words out of reports.
pub(crate) fn asks_to_anonymize() -> bool {
    variable(ANONYMIZE_VARIABLE).is_some_and(|value| !value.is_empty())
}

/// Returns whether the program has more privileges than the user who started it: set-user-id,
/// set-group-id, or file capabilities. That user chose the environment, so it must be ignored.
///
/// Makes no system call and allocates nothing, so hooks may call it.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_privileged() -> bool {
    // SAFETY: a plain call. The kernel wrote the value when the program started.
    !cfg!(miri) && unsafe { libc::getauxval(libc::AT_SECURE) } != 0
}

/// Returns whether the program runs as another user or group than the one who started it. Windows
/// has no such programs.
#[cfg(not(unix))]
#[must_use]
pub fn is_privileged() -> bool {
    false
}

/// Returns whether the program runs as another user or group than the one who started it.
#[cfg(all(unix, not(target_os = "linux")))]
#[must_use]
pub fn is_privileged() -> bool {
    // SAFETY: a plain call.
    let (user, effective) = (unsafe { libc::getuid() }, unsafe { libc::geteuid() });
    // SAFETY: a plain call.
    let (group, effective_group) = (unsafe { libc::getgid() }, unsafe { libc::getegid() });
    user != effective || group != effective_group
}

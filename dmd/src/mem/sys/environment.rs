//! Reads environment variables, unless the program has privileges that its starter lacks.
//!
//! No other file of this crate reads the environment: `cargo xtask tidy environment`.
#![expect(unsafe_code, reason = "reads the environment before Rust may")]

use std::ffi::{CStr, OsString};

use memreport::__private::is_privileged;

/// Returns the value of a variable, if it is set and may be obeyed. Hooks may call it: it allocates
/// nothing.
pub(crate) fn variable_in_hook(name: &CStr) -> Option<&'static CStr> {
    if is_privileged() {
        return None;
    }
    // SAFETY: the name is a C string. The value stays valid unless the program changes the variable
    // while its first block is allocated.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: `getenv` returns a C string.
    Some(unsafe { CStr::from_ptr(value) })
}

/// Returns the value of a variable, if it is set, not empty, and may be obeyed.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    if is_privileged() {
        return None;
    }
    std::env::var_os(name).filter(|value| !value.is_empty())
}

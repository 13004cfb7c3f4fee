//! The environment variable `$DMD`.
#![expect(unsafe_code, reason = "reads the environment before Rust may")]

use std::ffi::CStr;

use super::options::{BadWord, Options};

/// The value of `$DMD`, if it is set, as text.
pub(crate) fn text() -> Option<&'static str> {
    // SAFETY: a string constant; the answer points into the environment. A program that changes `$DMD` while its first
    // block is allocated is beyond help.
    let value = unsafe { libc::getenv(c"DMD".as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: `getenv` gives a string that ends.
    let value = unsafe { CStr::from_ptr(value) };
    // What is not text is a bad word too.
    Some(value.to_str().unwrap_or("\u{fffd}"))
}

/// The wishes in `$DMD`. Empty is as if it were not set.
pub(crate) fn options() -> Option<Result<Options, BadWord<'static>>> {
    let text = text()?;
    if text.trim().is_empty() { None } else { Some(Options::parse(text)) }
}

//! The environment variable `$DMD`.
#![expect(unsafe_code, reason = "reads the environment before Rust may")]

use std::ffi::CStr;

use super::options::{BadWord, Options};

/// Returns the value of `$DMD` as text, if it is set.
pub(crate) fn text() -> Option<&'static str> {
    // SAFETY: the name is a C string. The value stays valid unless the program changes `$DMD` while
    // its first block is allocated.
    let value = unsafe { libc::getenv(c"DMD".as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: `getenv` returns a C string.
    let value = unsafe { CStr::from_ptr(value) };
    // A value that is not UTF-8 becomes an unknown word.
    Some(value.to_str().unwrap_or("\u{fffd}"))
}

/// Returns the options in `$DMD`. Blank text counts as not set.
pub(crate) fn options() -> Option<Result<Options, BadWord<'static>>> {
    let text = text()?;
    if text.trim().is_empty() { None } else { Some(Options::parse(text)) }
}

//! The environment variable `$DMD`.

use super::options::{BadWord, Options};
use crate::mem::sys;

/// Returns the value of `$DMD` as text, if it is set and may be obeyed.
pub(crate) fn text() -> Option<&'static str> {
    let value = sys::variable_in_hook(c"DMD")?;
    // A value that is not UTF-8 becomes an unknown word.
    Some(value.to_str().unwrap_or("\u{fffd}"))
}

/// Returns the options in `$DMD`. Blank text counts as not set.
pub(crate) fn options() -> Option<Result<Options, BadWord<'static>>> {
    let text = text()?;
    if text.trim().is_empty() { None } else { Some(Options::parse(text)) }
}

//! The terminal at standard output.

use std::os::fd::AsFd;

/// Returns its width in columns, if it reports one.
pub(super) fn columns(out: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    Some(usize::from(size.ws_col))
}

/// Returns whether it acts on the escape sequences of colours.
pub(super) fn has_colours() -> bool {
    true
}

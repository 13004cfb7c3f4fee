//! Programs that close their streams, or print much.
#![expect(unsafe_code, reason = "closes descriptors")]

use std::io::{self, Write};
use std::path::Path;

use crate::Failure;
use crate::planted::{leave, plant, save};

/// Closes its streams and continues. The dump's file may then get one of their descriptors.
pub(crate) fn closed(path: &Path) -> Result<(), Failure> {
    for stream in 0..3 {
        // SAFETY: no owned descriptor refers to the standard streams.
        unsafe { libc::close(stream) };
    }
    leave(path)
}

/// Prints much, until the reader closes the output.
pub(crate) fn long(path: &Path) -> Result<(), Failure> {
    let planted = plant(10);
    let mut out = io::stdout().lock();
    for number in 0..20_000 {
        if writeln!(out, "line {number}").is_err() {
            break;
        }
    }
    drop(out);
    save(path)?;
    drop(planted);
    Ok(())
}

//! The bytes that a dump is read from.

use std::io::{self, BufRead};

use super::error::ReadError;

/// The bytes of a dump, which know what an error of theirs means.
pub(crate) trait Input: BufRead {
    /// Returns the error of the dump for one of reading.
    fn error(&self, error: io::Error) -> ReadError;
}

impl Input for &[u8] {
    fn error(&self, error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

//! Defines the error of a figure that the system or the allocator does not provide.

use std::error::Error;
use std::{fmt, io};

/// The reason why a figure is not available.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unavailable {
    /// The operating system's file cannot be read, or its function fails.
    NotRead {
        /// The file or the function.
        path: &'static str,
        /// The error of reading it.
        source: io::Error,
    },
    /// The operating system's file or function does not contain the figure in the expected form.
    NotUnderstood {
        /// The file or the function.
        path: &'static str,
    },
    /// The program declares no allocator, so blocks are not counted.
    NoAllocator,
    /// The program's allocator has no statistics.
    NoStatistics,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NotRead { path, .. } => write!(out, "{path} cannot be read"),
            Unavailable::NotUnderstood { path } => write!(out, "{path} has no such figure"),
            Unavailable::NoAllocator => {
                out.write_str("no allocator is declared; write `memreport::global_allocator!();`")
            }
            Unavailable::NoStatistics => {
                out.write_str("the allocator says nothing; implement `UsableSize::statistics`")
            }
        }
    }
}

impl Error for Unavailable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Unavailable::NotRead { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_has_a_cause() {
        let path = "/proc/self/smaps_rollup";
        let source = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = Unavailable::NotRead { path, source };
        assert_eq!(error.to_string(), "/proc/self/smaps_rollup cannot be read");
        assert_eq!(error.source().map(ToString::to_string), Some("permission denied".to_owned()));
        assert!(Unavailable::NotUnderstood { path }.source().is_none());
    }
}

//! Defines the error of a figure that the system or the allocator does not provide.

use std::error::Error;
use std::{fmt, io};

/// Why a figure cannot be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unavailable {
    /// The operating system's file with it cannot be read.
    NotRead {
        /// The file.
        path: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The operating system's file does not have it, or not as expected.
    NotUnderstood {
        /// The file.
        path: &'static str,
    },
    /// The program declares no allocator, so nobody counts its blocks.
    NoAllocator,
    /// The program's allocator does not say how much it has.
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

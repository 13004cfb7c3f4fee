//! Names the reporters and values that a snapshot misses.

use core::fmt;

/// A reporter or a value that a snapshot misses. Its bytes are in `heap-unclassified-or-missed`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missed {
    /// The path that is missing or too small, or the name of the reporter if its paths are not
    /// known.
    pub reporter: String,
    /// The reason.
    pub reason: MissedReason,
}

/// The reason why a reporter or a value is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissedReason {
    /// Other threads held the locks of some values, for longer than the collection waited.
    Locked,
    /// The reporter still runs for an earlier collection.
    Running,
    /// The reporter panicked.
    Panicked,
}

impl MissedReason {
    /// Returns the word of the file format.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            MissedReason::Locked => "locked",
            MissedReason::Running => "running",
            MissedReason::Panicked => "panicked",
        }
    }
}

impl Missed {
    pub(crate) fn new(reporter: impl Into<String>, reason: MissedReason) -> Self {
        Missed { reporter: reporter.into(), reason }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reporter, self.reason.word())
    }
}

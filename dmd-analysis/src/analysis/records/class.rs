//! The classes of blocks: unreported, reported once, reported twice, or all of a dump without
//! reports.

use crate::read::{Dump, Mode, TraceId};

/// A class of blocks. Each class has its own section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Class {
    /// All blocks of a live or scan dump.
    Live,
    /// All blocks of a cumulative dump.
    Cumulative,
    /// Reported twice or more often.
    TwiceReported,
    /// Never reported.
    Unreported,
    /// Reported exactly once, which is correct.
    OnceReported,
    /// From before tracking began or while it was off: the dump contains only their sum.
    Untracked,
}

impl Class {
    /// Returns its name within a line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Cumulative => "cumulative",
            Self::TwiceReported => "twice-reported",
            Self::Unreported => "unreported",
            Self::OnceReported => "once-reported",
            Self::Untracked => "untracked",
        }
    }

    /// Returns its name at the start of a line.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Self::Live => "Live",
            Self::Cumulative => "Cumulative",
            Self::TwiceReported => "Twice-reported",
            Self::Unreported => "Unreported",
            Self::OnceReported => "Once-reported",
            Self::Untracked => "Untracked",
        }
    }
}

/// The blocks of [`Class::Untracked`], as a line of its own.
pub const UNTRACKED: &str = "(from before tracking began or while it was off)";

/// Returns the mode by which blocks are classified. Our scans contain reports, which Mozilla's mode
/// `scan` does not.
pub(crate) fn mode(dump: &Dump) -> Mode {
    match dump.invocation.mode {
        Mode::Scan if dump.extension.is_some() => Mode::DarkMatter,
        mode => mode,
    }
}

/// Returns the class of a block with these reports in a dump of this mode.
pub(crate) fn class(mode: Mode, reports: Option<&[TraceId]>) -> Class {
    match (mode, reports.map(<[TraceId]>::len)) {
        (Mode::Live | Mode::Scan, _) => Class::Live,
        (Mode::Cumulative, _) => Class::Cumulative,
        (Mode::DarkMatter, None) => Class::Unreported,
        (Mode::DarkMatter, Some(1)) => Class::OnceReported,
        (Mode::DarkMatter, Some(_)) => Class::TwiceReported,
    }
}

//! Defines the errors of reading dumps and recordings: the file, the problem, the remedy.

use std::path::PathBuf;
use std::{error, fmt, io};

use crate::input::kind::FileKind;
use memreport_analysis::analysis::{ClampError, DifferentModes, NoReports, ReferrersError};
use memreport_analysis::export::Format;
use memreport_analysis::heap::history::HistoryError;
use memreport_analysis::read::ReadError;
use memreport_analysis::recording::{MomentError, RecordingError};
use memreport_analysis::retention::TargetNotFound;

/// The reason why a command cannot use a dump or a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum DumpError {
    /// A dump could not be read.
    Read(PathBuf, ReadError),
    /// There is no such file; the message names others.
    Missing(PathBuf, String),
    /// The file is no dump, but of this kind.
    OtherKind(PathBuf, FileKind),
    /// A recording could not be read.
    Recording(PathBuf, RecordingError),
    /// One of these recordings could not be read.
    History(Vec<PathBuf>, HistoryError),
    /// A recording does not have a moment.
    Moment(PathBuf, MomentError),
    /// A dump has a single moment.
    NoTime(PathBuf),
    /// A recording contains no reports.
    Unreported(PathBuf),
    /// A dump alone cannot be compared.
    Alone(PathBuf),
    /// A dump could not be clamped.
    Clamp(PathBuf, ClampError),
    /// The address cannot be looked up.
    Referrers(PathBuf, ReferrersError),
    /// No block of the dump matches.
    NotThere(PathBuf, TargetNotFound),
    /// A dump contains no reports.
    NoReports(PathBuf, NoReports),
    /// The two dumps cannot be compared.
    Modes(DifferentModes),
    /// A folder cannot be read.
    Folder(PathBuf, io::Error),
    /// A folder has too few dumps to compare: this many.
    TooFew(PathBuf, usize),
    /// The format takes a single heap.
    Several,
    /// A binary file would go to a terminal.
    Binary,
    /// The output file cannot be created.
    Create(PathBuf, io::Error),
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Missing(path, message) => write!(f, "{}: {message}", path.display()),
            Self::OtherKind(path, kind) => {
                write!(f, "{}: {}", path.display(), kind.describe(path))
            }
            Self::Recording(path, error) => write!(f, "{}: {error}", path.display()),
            Self::History(paths, error) => {
                let names: Vec<String> =
                    paths.iter().map(|path| path.display().to_string()).collect();
                let one_of = if names.len() > 1 { "one of " } else { "" };
                write!(f, "{one_of}{}: {error}", names.join(", "))
            }
            Self::Moment(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NoTime(path) => {
                write!(
                    f,
                    "{}: a dump is of one moment: only recordings have others",
                    path.display()
                )
            }
            Self::Unreported(path) => write!(
                f,
                "{}: a recording does not know who reports what: take a dump with DMD=1",
                path.display()
            ),
            Self::Alone(path) => write!(
                f,
                "{}: a dump alone can be compared with nothing: name a second one, or a recording",
                path.display()
            ),
            Self::Clamp(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Referrers(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NotThere(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NoReports(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Modes(error) => error.fmt(f),
            Self::Folder(path, error) => write!(f, "{}: {error}", path.display()),
            Self::TooFew(path, count) => write!(
                f,
                "{}: {count} of the two dumps that a comparison takes; name two, or a folder that has them",
                path.display()
            ),
            Self::Several => {
                let several = Format::ALL.iter().rev().filter(|format| format.takes_several());
                let names: Vec<&str> = several.map(|format| format.name()).collect();
                let names = names.join(" or ");
                write!(
                    f,
                    "this format has room for one heap: export them one by one, or --to {names}"
                )
            }
            Self::Binary => {
                f.write_str("a pprof file is no text for a terminal: name a file with -o")
            }
            Self::Create(path, error) => {
                write!(f, "{}: cannot be written: {error}", path.display())
            }
        }
    }
}

impl error::Error for DumpError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Read(_, error) => Some(error),
            Self::Recording(_, error) => Some(error),
            Self::History(_, error) => Some(error),
            Self::Moment(_, error) => Some(error),
            Self::Clamp(_, error) => Some(error),
            Self::Referrers(_, error) => Some(error),
            Self::NotThere(_, error) => Some(error),
            Self::NoReports(_, error) => Some(error),
            Self::Modes(error) => Some(error),
            Self::NoTime(_)
            | Self::Missing(..)
            | Self::OtherKind(..)
            | Self::Unreported(_)
            | Self::Alone(_)
            | Self::TooFew(..)
            | Self::Several
            | Self::Binary => None,
            Self::Folder(_, error) | Self::Create(_, error) => Some(error),
        }
    }
}

impl From<DifferentModes> for DumpError {
    fn from(error: DifferentModes) -> Self {
        Self::Modes(error)
    }
}

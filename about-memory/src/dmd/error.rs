//! What can go wrong in `about-memory dmd`: the file, what is the matter, the remedy.

use std::path::PathBuf;
use std::{error, fmt, io};

use memreport_analysis::analysis::{ClampError, DifferentModes, NoReports, ReferrersError};
use memreport_analysis::read::ReadError;
use memreport_analysis::recording::{MomentError, RecordingError};
use memreport_analysis::retention::NotThere;

/// Why `about-memory dmd` gave no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum DmdError {
    /// A dump could not be read.
    Read(PathBuf, ReadError),
    /// A recording could not be read.
    Recording(PathBuf, RecordingError),
    /// A recording does not have a moment.
    Moment(PathBuf, MomentError),
    /// A dump is of one moment.
    NoTime(PathBuf),
    /// A recording does not say who reports what.
    Unreported(PathBuf),
    /// A dump alone can be compared with nothing.
    Alone(PathBuf),
    /// A dump could not be clamped.
    Clamp(PathBuf, ClampError),
    /// Nothing can be said of an address.
    Referrers(PathBuf, ReferrersError),
    /// No block of the dump is meant.
    NotThere(PathBuf, NotThere),
    /// A dump does not say who reports what.
    NoReports(PathBuf, NoReports),
    /// The two dumps cannot be compared.
    Modes(DifferentModes),
    /// A folder could not be looked into.
    Folder(PathBuf, io::Error),
    /// So many dumps are in a folder: none that could be compared with another.
    TooFew(PathBuf, usize),
    /// More heaps than a file of this format has room for.
    Several,
    /// Bytes that are no text would go to a terminal.
    Binary,
    /// The output file could not be made.
    Create(PathBuf, io::Error),
    /// The answer could not be written.
    Write(io::Error),
}

impl fmt::Display for DmdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Recording(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Moment(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NoTime(path) => {
                write!(f, "{}: a dump is of one moment: only recordings have others", path.display())
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
            Self::Several => f.write_str(
                "this format has room for one heap: export them one by one, or --to memory-infra or massif",
            ),
            Self::Binary => {
                f.write_str("a pprof file is no text for a terminal: name a file with -o")
            }
            Self::Create(path, error) => {
                write!(f, "{}: cannot be written: {error}", path.display())
            }
            Self::Write(error) => write!(f, "the answer cannot be written: {error}"),
        }
    }
}

impl error::Error for DmdError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Read(_, error) => Some(error),
            Self::Recording(_, error) => Some(error),
            Self::Moment(_, error) => Some(error),
            Self::Clamp(_, error) => Some(error),
            Self::Referrers(_, error) => Some(error),
            Self::NotThere(_, error) => Some(error),
            Self::NoReports(_, error) => Some(error),
            Self::Modes(error) => Some(error),
            Self::NoTime(_)
            | Self::Unreported(_)
            | Self::Alone(_)
            | Self::TooFew(..)
            | Self::Several
            | Self::Binary => None,
            Self::Folder(_, error) | Self::Create(_, error) | Self::Write(error) => Some(error),
        }
    }
}

impl From<DifferentModes> for DmdError {
    fn from(error: DifferentModes) -> Self {
        Self::Modes(error)
    }
}

//! What can go wrong in `about-memory dmd`: the file, what is the matter, the remedy.

use std::path::PathBuf;
use std::{error, fmt, io};

use dmd::analysis::{ClampError, DifferentModes, NoReports, ReferrersError};
use dmd::dump::read::ReadError;

/// Why `about-memory dmd` gave no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum DmdError {
    /// A dump could not be read.
    Read(PathBuf, ReadError),
    /// A dump could not be clamped.
    Clamp(PathBuf, ClampError),
    /// Nothing can be said of an address.
    Referrers(PathBuf, ReferrersError),
    /// A dump does not say who reports what.
    NoReports(PathBuf, NoReports),
    /// The two dumps cannot be compared.
    Modes(DifferentModes),
    /// A folder could not be looked into.
    Folder(PathBuf, io::Error),
    /// So many dumps are in a folder: none that could be compared with another.
    TooFew(PathBuf, usize),
    /// More dumps than a file of this format has room for.
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
            Self::Clamp(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Referrers(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NoReports(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Modes(error) => error.fmt(f),
            Self::Folder(path, error) => write!(f, "{}: {error}", path.display()),
            Self::TooFew(path, count) => write!(
                f,
                "{}: {count} of the two dumps that a comparison takes; name two, or a folder that has them",
                path.display()
            ),
            Self::Several => f.write_str(
                "this format has room for one dump: export them one by one, or --to memory-infra or massif",
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
            Self::Clamp(_, error) => Some(error),
            Self::Referrers(_, error) => Some(error),
            Self::NoReports(_, error) => Some(error),
            Self::Modes(error) => Some(error),
            Self::TooFew(..) | Self::Several | Self::Binary => None,
            Self::Folder(_, error) | Self::Create(_, error) | Self::Write(error) => Some(error),
        }
    }
}

impl From<DifferentModes> for DmdError {
    fn from(error: DifferentModes) -> Self {
        Self::Modes(error)
    }
}

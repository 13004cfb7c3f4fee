//! The error for a file that is not a recording.

use std::{error, fmt, io};

/// The error for a file that is not a recording, or that has changed since it was read.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be read.
    Io(io::Error),
    /// The first line is not the header of a recording.
    NotARecording,
    /// The recording has this unknown version.
    Version(u64),
    /// A line is malformed.
    Line {
        /// The number of the line, from 1.
        number: usize,
        /// The defect.
        problem: String,
    },
    /// The file has other blocks than when it was read first.
    Changed,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                write!(f, "{error}")
            }
            RecordingError::Io(error) if is_damaged(error) => {
                write!(
                    f,
                    "damaged gzip data ({error}): the recording was changed in transit, copy it again or record it again"
                )
            }
            RecordingError::Io(_) => f.write_str("cannot be read"),
            RecordingError::NotARecording => {
                f.write_str("no recording; `about-memory record` and `dmd::record` write those")
            }
            RecordingError::Version(version) => {
                write!(f, "recording of version {version}; 1 and 2 are known")
            }
            RecordingError::Line { number, problem } => write!(f, "line {number}: {problem}"),
            RecordingError::Changed => {
                f.write_str("the recording was changed while it was read; read it again")
            }
        }
    }
}

/// Returns whether bytes were read that cannot be unpacked.
fn is_damaged(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
}

impl error::Error for RecordingError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            RecordingError::Io(error) => Some(error),
            _ => None,
        }
    }
}

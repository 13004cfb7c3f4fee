//! Defines the errors of reading a memory report, with messages that state a remedy.

use super::Field;
use super::unzip::Bomb;
use std::error::Error;
use std::fmt;
use std::io;

/// The reason why a file could not be read as a memory report.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The input could not be read.
    Io(io::Error),
    /// The gzip stream ends too early.
    CutGzip(io::Error),
    /// The gzip stream is damaged.
    BadGzip(io::Error),
    /// The file is empty.
    Empty,
    /// The text is UTF-16.
    Utf16,
    /// The text is longer than the limit.
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// Objects and arrays are nested deeper than the limit.
    TooDeep {
        /// The limit in levels.
        limit: usize,
        /// The position in bytes from the start of the text.
        offset: u64,
    },
    /// A string is longer than the limit.
    LongString {
        /// The limit in bytes.
        limit: usize,
        /// The position in bytes from the start of the text.
        offset: u64,
    },
    /// A gzipped file unzips to much more than its size.
    Bomb(io::Error),
    /// A value besides the reports is longer than the limit.
    LargeValue {
        /// The limit in bytes.
        limit: u64,
        /// The position in bytes from the start of the text.
        offset: u64,
    },
    /// The text is not JSON.
    Json {
        /// The position in bytes from the start of the text.
        offset: u64,
        /// The defect at this position.
        what: String,
    },
    /// The file, or its member `memory_report`, is no object.
    NotAnObject,
    /// The file has another version of the format.
    Version {
        /// The value of the version field.
        found: Field<'static>,
    },
    /// The file lacks the field for whether the allocator has a size query.
    NoUsableSize,
    /// The file has no list of reports.
    NoReports,
    /// A report is not an object.
    ReportIsNoObject {
        /// The index in the list, from 0.
        index: usize,
    },
    /// A report has no path, or its path is not a string.
    ReportWithoutPath {
        /// The index in the list, from 0.
        index: usize,
        /// The value of the path field.
        found: Field<'static>,
    },
    /// A report has another defect.
    Report {
        /// The index in the list, from 0.
        index: usize,
        /// The path, shortened.
        path: String,
        /// The defect.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ReadError {
    /// Classifies an input error: the gzip decoder uses the same type as the file below it.
    pub(super) fn from_io(error: io::Error) -> Self {
        if error.get_ref().is_some_and(|inner| inner.is::<Bomb>()) {
            return ReadError::Bomb(error);
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::CutGzip(error),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => ReadError::BadGzip(error),
            _ => ReadError::Io(error),
        }
    }

    /// Writes the message of a limit.
    fn fmt_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::TooLarge { limit } => {
                write!(
                    f,
                    "more than {limit} bytes of text; if it is to be trusted, raise the limit"
                )
            }
            ReadError::TooDeep { limit, offset } => {
                write!(
                    f,
                    "more than {limit} levels of nesting at byte {offset}; no memory report nests so deep"
                )
            }
            ReadError::LongString { limit, offset } => {
                write!(
                    f,
                    "a string or number of more than {limit} bytes at byte {offset}; no memory report has one so long"
                )
            }
            ReadError::Bomb(error) => write!(f, "{error}"),
            ReadError::LargeValue { limit, offset } => {
                write!(
                    f,
                    "a value of more than {limit} bytes at byte {offset}; only the list of reports may be so long"
                )
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(_) => f.write_str("it cannot be read"),
            ReadError::CutGzip(_) => f.write_str(
                "the gzip stream ends too early: the file is cut off; save or copy it again",
            ),
            ReadError::BadGzip(_) => {
                f.write_str("the gzip stream is damaged; save or copy the file again")
            }
            ReadError::Empty => {
                f.write_str("the file is empty; was it read while it was being written?")
            }
            ReadError::Utf16 => f.write_str("text in UTF-16; convert it to UTF-8"),
            ReadError::Json { offset, what } => write!(f, "not JSON at byte {offset}: {what}"),
            ReadError::NotAnObject => f.write_str(
                "JSON, but no memory report: an object with `version` and `reports` is expected",
            ),
            ReadError::Version { found: Field::Missing } => f.write_str(
                "JSON, but no memory report: it has no `version`; is it a file of another tool?",
            ),
            ReadError::Version { found: found @ Field::Number(_) } => {
                write!(f, "memory report of version {found}; only 1 is known")
            }
            ReadError::Version { found } => {
                write!(f, "the version of the memory report is {found}; only the number 1 is known")
            }
            ReadError::NoUsableSize => f.write_str(
                "no memory report: `hasMozMallocUsableSize` is missing; write true or false",
            ),
            ReadError::NoReports => {
                f.write_str("no memory report: `reports` is missing or is no array")
            }
            ReadError::ReportIsNoObject { index } => write!(f, "report {index} is no object"),
            ReadError::ReportWithoutPath { index, found: Field::Missing } => {
                write!(f, "report {index} has no path")
            }
            ReadError::ReportWithoutPath { index, found } => {
                write!(f, "the path of report {index} is {found}; it must be a string")
            }
            ReadError::TooLarge { .. }
            | ReadError::TooDeep { .. }
            | ReadError::LongString { .. }
            | ReadError::Bomb(_)
            | ReadError::LargeValue { .. } => self.fmt_limit(f),
            ReadError::Report { index, path, .. } => write!(f, "report {index} (`{path}`)"),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReadError::Io(error) | ReadError::CutGzip(error) | ReadError::BadGzip(error) => {
                Some(error)
            }
            ReadError::Report { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

//! Errors of reading a dump. Each message names the problem, then the remedy.

use std::{error, fmt, io};

/// The error for a dump that cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be read.
    Io(io::Error),
    /// The words of a large scan could not be copied to a file.
    Copy(io::Error),
    /// The gzip data is damaged or cut.
    Gzip(io::Error),
    /// The dump unpacks to much more than its size.
    Bomb(io::Error),
    /// The unpacked dump is larger than this limit in bytes.
    TooLarge(u64),
    /// There is no text at all.
    Empty,
    /// The file begins with a zero byte, as one does that was not written yet.
    Zeros,
    /// The text ends before the dump does.
    Truncated {
        /// The line at which it ends, from 1.
        line: usize,
    },
    /// The text is not JSON, or a field has the wrong type.
    Json(serde_json::Error),
    /// A field that every dump has is missing.
    Missing(&'static str),
    /// The dump has this other version of the format.
    Version(i64),
    /// The dump has this unknown mode.
    Mode(String),
    /// A block lacks its requested size.
    BlockWithoutReq {
        /// The index of the block in `blockList`.
        index: usize,
    },
    /// An `addr` or a word of `contents` is not a hexadecimal number.
    BadAddress {
        /// The index of the block in `blockList`.
        index: usize,
        /// The text instead of the number.
        text: String,
    },
    /// The blocks of a scan end before the last one.
    CutBlocks {
        /// The number of whole blocks.
        index: u64,
        /// The number of blocks that the dump should have.
        count: u64,
    },
    /// A block of a scan names a kind that the dump does not have, or there are too many blocks.
    BadBlock {
        /// The number of blocks before it.
        index: u64,
    },
    /// The dump's extension has this unknown version.
    ExtensionVersion(u64),
    /// The dump requires this feature, which this reader does not have.
    Needs(String),
}

impl ReadError {
    /// Writes the message of an error of a single block.
    fn fmt_block(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlockWithoutReq { index } => {
                write!(
                    f,
                    "block {index} of blockList has no `req` (its requested size): the writer of this dump is at fault"
                )
            }
            Self::BadAddress { index, text } => {
                write!(
                    f,
                    "block {index} of blockList holds `{text}` where a hexadecimal address should be"
                )
            }
            Self::CutBlocks { index, count } => {
                write!(
                    f,
                    "scan that ends after {index} of {count} blocks: the program stopped while writing it, or the copy is cut"
                )
            }
            Self::BadBlock { index } => {
                write!(f, "scan with a damaged block after {index} others: take or copy it again")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read the dump: {error}"),
            Self::Copy(error) => {
                write!(
                    f,
                    "cannot copy the contents of blocks to a temporary file: {error}; let TMPDIR name a folder with more room, or unpack the dump first"
                )
            }
            Self::Gzip(error) => {
                write!(
                    f,
                    "damaged gzip data ({error}): the dump was cut short or changed in transit, take or copy it again"
                )
            }
            Self::TooLarge(limit) => {
                write!(
                    f,
                    "dump of more than {limit} bytes once unpacked: check that it is one, or raise the limit"
                )
            }
            Self::Empty => f.write_str("the dump is empty; was it read while it was being written?"),
            Self::Zeros => f.write_str(
                "not a DMD dump: it begins with zeros. It was not written to its end, or the copy is damaged: take or copy it again",
            ),
            Self::Truncated { line } => {
                write!(
                    f,
                    "dump that ends in the middle, at line {line}: the program stopped while writing it, or the copy is cut"
                )
            }
            Self::Json(error) => write!(f, "not a DMD dump: {error}"),
            Self::Bomb(error) => write!(f, "{error}"),
            Self::Missing(what) => write!(f, "not a DMD dump: it has no `{what}`"),
            // Memory reports have version 1.
            Self::Version(1) => f.write_str(
                "DMD dump of version 1; only 5 is known. If it is a memory report, name the dump beside it, \
                 which ends in .dmd.json or .dmd.json.gz",
            ),
            Self::Version(found) => write!(f, "DMD dump of version {found}; only 5 is known"),
            Self::Mode(found) => write!(
                f,
                "DMD dump of mode `{found}`; only live, dark-matter, cumulative and scan are known"
            ),
            Self::BlockWithoutReq { .. }
            | Self::BadAddress { .. }
            | Self::CutBlocks { .. }
            | Self::BadBlock { .. } => self.fmt_block(f),
            Self::ExtensionVersion(found) => {
                write!(
                    f,
                    "dump with a memreport extension of version {found}; only 1 is known: use a newer about-memory"
                )
            }
            Self::Needs(feature) => {
                write!(
                    f,
                    "dump that only a reader knowing `{feature}` understands: use a newer about-memory"
                )
            }
        }
    }
}

impl error::Error for ReadError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io(error) | Self::Copy(error) | Self::Gzip(error) => Some(error),
            Self::Json(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn an_error_of_the_system_or_of_json_is_the_source() {
        let of_system = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let json = serde_json::from_str::<u8>("x").expect_err("it is no number");
        for (error, expected) in [
            (ReadError::Io(of_system()), true),
            (ReadError::Copy(of_system()), true),
            (ReadError::Gzip(of_system()), true),
            (ReadError::Json(json), true),
            (ReadError::TooLarge(5), false),
            (ReadError::Missing("version"), false),
        ] {
            assert_eq!(error.source().is_some(), expected, "{error}");
        }
    }
}

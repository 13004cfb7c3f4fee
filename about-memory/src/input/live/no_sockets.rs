//! Running programs on a system without memreport's sockets: none is found, and asking one is an
//! error that names what to do instead.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::Target;

/// The reason why no running program is asked, with the remedy.
pub(crate) const NO_SOCKETS: &str = "memreport has no sockets on this system, so running programs cannot be asked; save a \
     report in the program, by `memreport::snapshot().save(\"heap.json.gz\")`, and name that file";

/// The error of `page serve` without a file.
pub(crate) const NOTHING_TO_SERVE: &str = NO_SOCKETS;

/// The error of asking a running program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// No program has a socket.
    NoSockets,
    /// No process can be read, so this must have been a file.
    NoProcess(String),
}

impl LiveError {
    /// Returns whether the program answered, and refused.
    pub(crate) fn is_refusal(&self) -> bool {
        false
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::NoSockets => f.write_str(NO_SOCKETS),
            LiveError::NoProcess(name) => {
                write!(f, "no process can be read on this system: `{name}` must be a file")
            }
        }
    }
}

impl Error for LiveError {}

/// A program with a socket. None is found.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its pid.
    pub pid: u32,
}

/// A running program that takes requests. No value of this type exists.
#[derive(Clone, Debug)]
pub struct Connection(Infallible);

/// The report of a program at one moment.
#[derive(Clone, Debug)]
pub struct Report {
    /// The memory report's file.
    pub report: Vec<u8>,
    /// DMD's dump.
    pub dump: Option<Vec<u8>>,
}

#[expect(missing_docs, clippy::missing_errors_doc, reason = "there is no connection to call")]
impl Connection {
    pub fn anonymize(self, _: bool) -> Self {
        match self.0 {}
    }

    pub fn pid(&self) -> u32 {
        match self.0 {}
    }

    pub fn name(&self) -> Result<String, LiveError> {
        match self.0 {}
    }

    pub fn report(&self, _: bool) -> Result<Report, LiveError> {
        match self.0 {}
    }

    pub fn history(&self) -> Result<Vec<Vec<u8>>, LiveError> {
        match self.0 {}
    }

    pub fn minimize(&self) -> Result<(), LiveError> {
        match self.0 {}
    }

    pub fn track(&self, _: bool) -> Result<(), LiveError> {
        match self.0 {}
    }
}

/// Returns a connection to the program.
///
/// # Errors
/// Always: no program has a socket.
pub fn choose(_: &Target, _: Duration) -> Result<Connection, LiveError> {
    Err(LiveError::NoSockets)
}

/// Returns all programs of this user with a socket: none.
#[must_use]
pub fn find() -> Vec<Program> {
    Vec::new()
}

/// Returns all programs that answer, with their names: none.
pub(crate) fn names() -> Vec<(Program, String)> {
    Vec::new()
}

/// Returns whether a program of this name has a socket.
pub(crate) fn is_running(_: &str) -> bool {
    false
}

/// Returns the pid in the name of a socket, which no file is.
pub(crate) fn pid_of(_: &Path) -> Option<u32> {
    None
}

/// Returns the process that a number stands for.
///
/// # Errors
/// It is a name: processes are looked up on Unix alone.
pub(crate) fn any_process(text: &str) -> Result<u32, LiveError> {
    text.parse().map_err(|_| LiveError::NoProcess(text.to_owned()))
}

/// Asks a running program for its memory report.
///
/// # Errors
/// Always: no program has a socket.
pub(crate) fn report_of(_: &Target) -> Result<Vec<u8>, LiveError> {
    Err(LiveError::NoSockets)
}

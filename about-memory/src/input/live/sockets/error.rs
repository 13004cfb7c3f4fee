//! Defines the errors of talking to running programs.

use std::error::Error;
use std::path::PathBuf;
use std::{fmt, io};

/// The error of `page serve` without a program and a file.
#[cfg(feature = "serve")]
pub(crate) const NOTHING_TO_SERVE: &str = "no running program has an open memreport socket, and no file is named; call \
     `memreport::serve()` in a program";

/// The reason why a running program did not answer, with the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// The process does not exist.
    NoProcess(u32),
    /// The process does not listen.
    NotServing(u32, PathBuf),
    /// The process belongs to another user.
    NotAllowed(u32),
    /// The file has no name of a program's socket.
    NotASocket(PathBuf),
    /// No program has this name.
    NoName(String),
    /// No process has this name.
    NoProcessNamed(String),
    /// Several programs have this name.
    ManyNames(String, Vec<u32>),
    /// Another process listens at the socket.
    WrongPeer {
        /// The expected process.
        pid: u32,
        /// The process that listens.
        peer: u32,
        /// The socket.
        socket: PathBuf,
    },
    /// The connection broke, or nothing arrived in time.
    Io(u32, io::Error),
    /// The answer is invalid.
    Garbled(u32, String),
    /// The program refused, with this message.
    Refused(u32, String),
}

impl LiveError {
    /// Returns whether the program answered, and refused.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, LiveError::Refused(..))
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::NoProcess(pid) => write!(f, "there is no process {pid}"),
            LiveError::NotServing(pid, socket) => write!(
                f,
                "process {pid} is not reachable: nothing listens at {}; call `memreport::serve()` in the program, or \
                 load the tracker into it: about-memory attach {pid}",
                socket.display()
            ),
            LiveError::NotAllowed(pid) => {
                write!(
                    f,
                    "process {pid} is another user's; only its own user and root may connect to it"
                )
            }
            LiveError::NotASocket(path) => write!(
                f,
                "{}: no program's socket; those are called memreport-PID.sock",
                path.display()
            ),
            LiveError::NoName(name) => write!(
                f,
                "no program called `{name}` has an open memreport socket; `about-memory ps` lists those that have"
            ),
            LiveError::NoProcessNamed(name) => {
                write!(f, "no process that you may see runs a program called `{name}`")
            }
            LiveError::ManyNames(name, pids) => {
                let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
                write!(
                    f,
                    "several programs are called `{name}`; choose one by its number: {}",
                    pids.join(", ")
                )
            }
            LiveError::WrongPeer { pid, peer, socket } => write!(
                f,
                "process {peer} listens at {}, the socket of process {pid}; it got no request",
                socket.display()
            ),
            LiveError::Io(pid, error) if error.kind() == io::ErrorKind::WouldBlock => {
                write!(f, "process {pid} did not answer in time; is it stopped?")
            }
            LiveError::Io(pid, _) => write!(f, "process {pid} did not answer"),
            LiveError::Garbled(pid, what) => {
                write!(
                    f,
                    "process {pid} gave an answer that is not understood ({what}); is it of another version?"
                )
            }
            LiveError::Refused(pid, message) => write!(f, "process {pid}: {message}"),
        }
    }
}

impl Error for LiveError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LiveError::Io(_, error) if error.kind() != io::ErrorKind::WouldBlock => Some(error),
            _ => None,
        }
    }
}

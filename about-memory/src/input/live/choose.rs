//! A program, as a person names it: by its number, its name or its socket.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use memreport::serve::place;

use super::connection::Connection;
use super::error::LiveError;
use super::find::{Program, find, program};

/// How long a program is waited for while names are compared.
const GLANCE: Duration = Duration::from_millis(500);

/// Which program is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The process of this number.
    Pid(u32),
    /// The one program of this name.
    Name(String),
    /// The one that listens here.
    Socket(PathBuf),
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        if text.contains('/') {
            return Ok(Target::Socket(text.into()));
        }
        Ok(text.parse().map_or_else(|_| Target::Name(text.to_owned()), Target::Pid))
    }
}

/// The way to the program that is meant.
///
/// # Errors
/// When there is none, or several.
pub fn choose(target: &Target, patience: Duration) -> Result<Connection, LiveError> {
    let name = match target {
        Target::Pid(pid) => return Ok(Connection::new(program(*pid)?, patience)),
        Target::Socket(socket) => {
            let pid = pid_of(socket).ok_or_else(|| LiveError::NotASocket(socket.clone()))?;
            return Ok(Connection::new(Program { pid, socket: socket.clone() }, patience));
        }
        Target::Name(name) => name,
    };
    let of_that_name: Vec<_> = find()
        .into_iter()
        .filter(|program| {
            let status = Connection::new(program.clone(), GLANCE).status();
            status.is_ok_and(|status| status.name == *name)
        })
        .collect();
    match &of_that_name[..] {
        [] => Err(LiveError::NoName(name.clone())),
        [program] => Ok(Connection::new(program.clone(), patience)),
        several => {
            let pids = several.iter().map(|program| program.pid).collect();
            Err(LiveError::ManyNames(name.clone(), pids))
        }
    }
}

/// The process whose socket has this path.
pub(crate) fn pid_of(socket: &Path) -> Option<u32> {
    place::pid_of(socket.file_name()?.to_str()?)
}

/// Asks a running program for its memory report. Returns the bytes of the report's file.
///
/// # Errors
/// The program cannot be reached or does not answer.
pub(crate) fn report_of(target: &Target) -> Result<Vec<u8>, LiveError> {
    Ok(choose(target, Duration::from_secs(30))?.report(false)?.report)
}

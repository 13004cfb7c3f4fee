//! Chooses a running program by pid, name or socket.

use std::path::Path;
use std::thread;
use std::time::Duration;

use memreport::serve::place;

use super::connection::Connection;
use super::error::LiveError;
use super::find::{Program, find, processes_named, program};
use crate::input::live::{DEFAULT_TIMEOUT, Target};

/// The time to wait for a program while comparing names.
const NAME_TIMEOUT: Duration = Duration::from_millis(500);

/// Returns a connection to the program.
///
/// # Errors
/// No program matches, or several do.
pub fn choose(target: &Target, timeout: Duration) -> Result<Connection, LiveError> {
    let name = match target {
        Target::Pid(pid) => return Ok(Connection::new(program(*pid)?, timeout)),
        Target::Socket(socket) => {
            let pid = pid_of(socket).ok_or_else(|| LiveError::NotASocket(socket.clone()))?;
            return Ok(Connection::new(Program { pid, socket: socket.clone() }, timeout));
        }
        Target::Name(name) => name,
    };
    let of_that_name = named(name);
    match &of_that_name[..] {
        [] => Err(LiveError::NoName(name.clone())),
        [program] => Ok(Connection::new(program.clone(), timeout)),
        several => {
            let pids = several.iter().map(|program| program.pid).collect();
            Err(LiveError::ManyNames(name.clone(), pids))
        }
    }
}

/// Returns the programs of a name.
fn named(name: &str) -> Vec<Program> {
    let named = names().into_iter().filter(|(_, own)| own == name);
    named.map(|(program, _)| program).collect()
}

/// Returns whether a program of this name has a socket.
pub(crate) fn is_running(name: &str) -> bool {
    !named(name).is_empty()
}

/// Returns all programs that answer, with their names.
pub(crate) fn names() -> Vec<(Program, String)> {
    // All at once: a slow program does not delay the others.
    thread::scope(|scope| {
        let asked: Vec<_> = find()
            .into_iter()
            .map(|program| {
                scope.spawn(|| {
                    let status = Connection::new(program.clone(), NAME_TIMEOUT).status().ok()?;
                    Some((program, status.name))
                })
            })
            .collect();
        asked.into_iter().filter_map(|asked| asked.join().ok()?).collect()
    })
}

/// Returns the process that a number or a name stands for, whether it has a socket or not. The name
/// is that of its program's file.
///
/// # Errors
/// No process of this user has the name, or several have it.
pub(crate) fn any_process(text: &str) -> Result<u32, LiveError> {
    if let Ok(pid) = text.parse() {
        return Ok(pid);
    }
    match &processes_named(text)[..] {
        [] => Err(LiveError::NoProcessNamed(text.to_owned())),
        [pid] => Ok(*pid),
        several => Err(LiveError::ManyNames(text.to_owned(), several.to_vec())),
    }
}

/// Returns the pid in the name of a socket.
pub(crate) fn pid_of(socket: &Path) -> Option<u32> {
    place::pid_of(socket.file_name()?.to_str()?)
}

/// Asks a running program for its memory report. Returns the bytes of the report's file.
///
/// # Errors
/// The program cannot be reached or does not answer.
pub(crate) fn report_of(target: &Target) -> Result<Vec<u8>, LiveError> {
    Ok(choose(target, DEFAULT_TIMEOUT)?.report(false)?.report)
}

//! Reads the state of a process: proc(5).

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::error::ProcessError;

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// It is stopped by a signal of job control.
    pub(crate) is_stopped: bool,
    /// It has a filter of system calls.
    pub(crate) is_filtered: bool,
}

/// Returns the state of a process that this one may trace.
///
/// # Errors
///
/// It does not exist, is another user's, or is traced already.
pub(crate) fn state(pid: u32) -> Result<State, ProcessError> {
    let not_there = |_| ProcessError::NotThere(pid);
    let folder = fs::metadata(format!("/proc/{pid}")).map_err(not_there)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(not_there)?;
    let own = rustix::process::getuid();
    if folder.uid() != own.as_raw() && !own.is_root() {
        return Err(ProcessError::OtherUser(pid));
    }
    if let Ok(tracer @ 1..) = field(&status, "TracerPid").parse::<u32>() {
        return Err(ProcessError::Traced(pid, tracer));
    }
    match field(&status, "State").chars().next() {
        Some('Z' | 'X') | None => Err(ProcessError::NotThere(pid)),
        letter => Ok(State {
            is_stopped: matches!(letter, Some('T' | 't')),
            is_filtered: field(&status, "Seccomp") == "2",
        }),
    }
}

/// Returns the field of a status with this name.
fn field<'text>(status: &'text str, name: &str) -> &'text str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
    line.unwrap_or_default()
}

/// Returns the numbers of a process's threads.
///
/// # Errors
///
/// The process has ended.
pub(crate) fn threads(pid: u32) -> Result<Vec<u32>, ProcessError> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    let entries = entries.map_err(|_| ProcessError::NotThere(pid))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_this_process_and_of_none() {
        let own = std::process::id();
        assert!(state(own).is_ok_and(|state| !state.is_stopped));
        assert!(threads(own).is_ok_and(|threads| threads.contains(&own)));
        assert!(matches!(state(u32::MAX), Err(ProcessError::NotThere(u32::MAX))));
        assert!(threads(u32::MAX).is_err());
        let status = "State:\tT (stopped)\nTracerPid:\t0\n";
        assert_eq!(field(status, "State"), "T (stopped)");
        assert_eq!(field(status, "Seccomp"), "");
    }
}

//! The reasons why another process cannot be examined.

use std::{fmt, io};

/// The reason why a process cannot be examined, with the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum ProcessError {
    /// It does not exist, or ended meanwhile.
    NotThere(u32),
    /// It belongs to another user.
    OtherUser(u32),
    /// Another process traces it.
    Traced(u32, u32),
    /// The kernel does not let this process trace it.
    NotAllowed(u32, io::Error),
    /// Something about its state cannot be read.
    Unreadable(u32, io::Error),
    /// A thread does not stop.
    NotStopped(u32),
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessError::NotThere(pid) => write!(f, "there is no process {pid}"),
            ProcessError::OtherUser(pid) => write!(
                f,
                "process {pid} is another user's; only its own user and root may examine it"
            ),
            ProcessError::Traced(pid, tracer) => write!(
                f,
                "process {pid} is traced by process {tracer} already, such as a debugger; end that first"
            ),
            ProcessError::NotAllowed(pid, error) => write!(
                f,
                "process {pid} may not be traced ({error}); do it as root, or allow it: sysctl kernel.yama.ptrace_scope=0; \
                 in a container, add the capability SYS_PTRACE"
            ),
            ProcessError::Unreadable(pid, error) => {
                write!(f, "process {pid} cannot be read: {error}")
            }
            ProcessError::NotStopped(pid) => write!(
                f,
                "a thread of process {pid} does not stop: it waits for a device; try again later"
            ),
        }
    }
}

impl std::error::Error for ProcessError {}

//! The reasons why a library does not get into a running program.

use std::fmt;
use std::path::PathBuf;

use crate::other_process::ProcessError;

/// The reason why the library was not loaded, with the remedy. The program goes on.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum InjectError {
    /// The process cannot be examined.
    Process(ProcessError),
    /// It has a filter of system calls.
    Filtered(u32),
    /// It is stopped.
    Stopped(u32),
    /// It has another allocator than glibc's.
    OtherAllocator(u32, PathBuf),
    /// It has no functions that load libraries.
    NoLoader(u32, String),
    /// No thread could be borrowed in time.
    Busy(u32),
    /// The program does not return from the functions that it was made to call.
    NoReturn(u32),
    /// The library cannot be written or loaded.
    Library(String),
    /// The library refused to track the program.
    Refused(u32, String),
    /// This processor's registers are not known.
    Architecture,
}

impl fmt::Display for InjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InjectError::Process(error) => write!(f, "{error}"),
            InjectError::Filtered(pid) => write!(
                f,
                "process {pid} has a filter of system calls (seccomp), which may end it if it starts threads or sockets; \
                 start it with `about-memory run` without the filter"
            ),
            InjectError::Stopped(pid) => {
                write!(f, "process {pid} is stopped; let it go on first: kill -CONT {pid}")
            }
            InjectError::OtherAllocator(pid, path) => write!(
                f,
                "process {pid} has a malloc of its own in {}; attach knows glibc's only. Start it with `about-memory run`, \
                 which tracks libraries with malloc",
                path.display()
            ),
            InjectError::NoLoader(pid, what) => {
                write!(f, "process {pid} cannot load a library: {what}")
            }
            InjectError::Busy(pid) => write!(
                f,
                "no thread of process {pid} was found where it can be borrowed; nothing was changed. Try again, or with a \
                 longer --timeout"
            ),
            InjectError::NoReturn(pid) => write!(
                f,
                "process {pid} did not return from dlopen in time, as if one of its threads held the linker's lock; \
                 the thread goes back to its own work once it does"
            ),
            InjectError::Library(why) => write!(f, "the library was not loaded: {why}"),
            InjectError::Refused(pid, why) => write!(f, "process {pid} is not tracked: {why}"),
            InjectError::Architecture => f.write_str("attach knows the registers of x86-64 only"),
        }
    }
}

impl std::error::Error for InjectError {}

impl From<ProcessError> for InjectError {
    fn from(error: ProcessError) -> Self {
        InjectError::Process(error)
    }
}

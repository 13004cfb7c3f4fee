//! Writes what commands find out about running processes.

#[cfg(unix)]
pub(crate) mod ps;
#[cfg(unix)]
pub(crate) mod log;
pub(crate) mod inspected;

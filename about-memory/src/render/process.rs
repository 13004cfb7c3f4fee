//! Writes what commands find out about running processes.

pub(crate) mod ps;
pub(crate) mod log;
pub(crate) mod inspected;

//! Stops, reads and changes running processes: Linux on x86-64, whose registers are known.

mod error;
mod state;
mod trace;
mod stopped;

pub(crate) use error::ProcessError;
pub(crate) use state::{State, state, threads};
pub(crate) use stopped::Stopped;
pub(crate) use trace::{Registers, Stop, Traced};

//! Other processes, seen through the kernel: their state, mappings, threads and memory.

mod error;
mod state;
mod maps;
mod trace;
mod stopped;

pub(crate) use error::ProcessError;
#[cfg(test)]
pub(crate) use maps::parse;
pub(crate) use maps::{Mapping, is_c_library, mappings};
pub(crate) use state::{State, state, threads};
pub(crate) use stopped::Stopped;
pub(crate) use trace::{Registers, Stop, Traced};

//! Stops, reads and changes running processes: Linux on x86-64, whose registers are known.

mod error;
mod state;
mod held_signals;
mod trace;
mod exported;
mod signal_frame;
mod borrowed;
mod child;
mod stopped;

pub(crate) use borrowed::{Borrowed, Functions};
pub(crate) use error::ProcessError;
pub(crate) use exported::{exported, file_of, find_text};
pub(crate) use held_signals::HeldSignals;
pub(crate) use signal_frame::{Frame, ThreadState, resumed};
pub(crate) use state::{State, state, threads};
pub(crate) use stopped::{Stopped, copy_memory};
pub(crate) use trace::{Registers, Stop, Traced};

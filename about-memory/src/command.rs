//! Runs the commands: one file for each, in folders as on the command line.
//!
//! Commands that start programs or ask running ones need sockets and signals of Unix. Elsewhere
//! each is an error that names what to do instead.

pub mod flags;
pub mod view;
pub mod inspect;
pub mod heap;
pub mod convert;
pub mod check;
pub mod annotate;
pub mod shell;
#[cfg(unix)]
pub mod launch;
#[cfg(unix)]
pub mod process;
#[cfg(unix)]
pub mod external;
#[cfg(not(unix))]
mod elsewhere;

#[cfg(not(unix))]
pub(crate) use elsewhere::NO_TRACKER;
#[cfg(not(unix))]
pub use elsewhere::{FleetCommand, LaunchCommand, ProcessCommand, SCOPE};
#[cfg(unix)]
pub use {external::FleetCommand, launch::LaunchCommand, process::ProcessCommand};

/// A paragraph for the help about what this system lacks.
#[cfg(unix)]
pub const SCOPE: Option<&str> = None;

//! Finds running programs, and talks to them over their sockets.

pub mod error;
pub(crate) mod socket;
pub mod find;
pub mod connection;
pub mod choose;

use std::time::Duration;

pub use choose::{Target, choose};
pub(crate) use choose::{any_process, is_running, names, pid_of, report_of};
pub use connection::Connection;
pub use error::LiveError;
pub use find::{Program, find, find_in, program};

/// The time within which a program must answer, unless an option states another.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

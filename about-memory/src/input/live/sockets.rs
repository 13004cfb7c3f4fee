//! The sockets of running programs: finding one, a connection to it, its errors.

pub mod error;
pub(crate) mod socket;
pub mod find;
pub mod connection;
pub mod choose;

pub use choose::choose;
pub(crate) use choose::{any_process, is_running, names, pid_of, report_of};
pub use connection::Connection;
pub use error::LiveError;
#[cfg(feature = "serve")]
pub(crate) use error::NOTHING_TO_SERVE;
pub use find::{Program, find, find_in, program};

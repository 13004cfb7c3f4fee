//! Finds running programs, and talks to them over their sockets.

pub mod error;
pub mod find;
pub mod connection;
pub mod choose;

pub use choose::{Target, choose};
pub(crate) use choose::{pid_of, report_of};
pub use connection::Connection;
pub use error::LiveError;
pub use find::{Program, find, find_in, program};

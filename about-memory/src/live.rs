//! Running programs: which can be asked, and what they answer.

pub mod find;
pub mod connection;
pub mod error;
pub mod choose;

pub(crate) use choose::pid_of;
pub use choose::{Target, choose};
pub use connection::Connection;
pub use error::LiveError;
pub use find::{Program, find, find_in, program};

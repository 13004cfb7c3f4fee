//! Talks to running programs over their sockets.

pub mod ps;
#[cfg(feature = "top")]
pub mod top;
pub mod snapshot;
pub mod minimize;
pub mod track;
pub mod attach;
pub mod inspect;
pub mod call;
pub mod log;

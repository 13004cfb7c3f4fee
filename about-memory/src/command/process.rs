//! Talks to running programs over their sockets.

pub mod ps;
pub mod top;
pub mod snapshot;
pub mod minimize;
pub mod track;
pub mod attach;
pub mod inspect;
pub mod call;
pub mod log;

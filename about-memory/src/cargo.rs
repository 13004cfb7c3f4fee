//! `cargo memreport`: builds a program of the current workspace, and measures it.

pub mod args;
pub(crate) mod build;
pub(crate) mod error;
pub(crate) mod init;
pub(crate) mod launch;
pub(crate) mod messages;
pub(crate) mod test;
pub(crate) mod workspace;

pub use args::CargoCli;

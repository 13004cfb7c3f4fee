//! Starts a program to measure or record it.

pub(crate) mod error;
pub(crate) mod preload;
pub(crate) mod program;
pub(crate) mod tracking;
pub mod run;
pub mod record;

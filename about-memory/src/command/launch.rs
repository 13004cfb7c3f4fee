//! Starts a program to measure or record it.

pub mod error;
pub mod preload;
pub(crate) mod program;
pub mod tracking;
pub mod run;
pub mod record;

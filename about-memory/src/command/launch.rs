//! Starts a program to measure or record it.

pub(crate) mod error;
pub(crate) mod program;
pub mod run;
pub mod record;

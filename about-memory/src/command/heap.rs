//! Analyses dumps and recordings of the heap.

pub mod tree;
pub mod diff;
pub mod census;
pub mod coverage;
pub mod dominators;
pub mod why_alive;
pub mod records;
pub(in crate::command) mod scan;
mod scan_options;

//! Reads dumps and recordings of the heap tracker, and answers questions about them.

pub mod axis;
pub mod read;
pub mod symbols;
pub mod recording;
pub mod analysis;
pub mod retention;
pub mod heap;
pub mod census;
pub mod export;
mod number;

//! The allocator's hooks, and the start of tracking.

pub(crate) mod start;
mod allocator;

pub use allocator::Dmd;
pub use start::{StartError, start, stop};

//! The allocator's hooks, and the start of tracking.
//!
//! Read `allocator` first: it holds the path of each block through the hooks. `start` decides at
//! the first block of the process, by `$DMD`, what the hooks do, and changes that on request.
//!
//! Invariants: no hook panics or does I/O, or takes a lock (apart from the reference unwinder on
//! old systems, see `stack/walk/reference.rs`); a block is removed from the table before it is
//! freed.

pub(crate) mod own_frames;
pub(crate) mod start;
pub(crate) mod preloaded;
pub(crate) mod c_heap;
mod allocator;
mod c_functions;
mod insert;
mod free;
mod declare;

pub use allocator::Dmd;
pub use start::{StartError, start, stop};

//! Events of single blocks: the ring, journals of threads, and observers.
//!
//! Read `ring` (the buffer), `events` (what recordings read), `journal` (one thread's events, for
//! tests) and `observers` (logs of sampled allocations). `models` checks the ring under loom.
//!
//! Invariants:
//! * A writer never waits, so hooks may write.
//! * An event is read once and whole, or counted as lost.

pub(crate) mod ring;
#[cfg(not(loom))]
pub(crate) mod journal;
#[cfg(not(loom))]
pub(crate) mod events;
#[cfg(not(loom))]
pub(crate) mod observers;
#[cfg(all(test, loom))]
mod models;

//! Events of single blocks: the buffers, journals of threads, and observers.
//!
//! Read `ring` (a buffer that overwrites the oldest event), `queue` (a buffer that waits for its
//! reader), `events` (what recordings read), `journal` (one thread's events, for tests) and
//! `observers` (logs of sampled allocations). `models` checks the buffers under loom.
//!
//! Invariants:
//! * A writer of a ring never waits. A writer of a queue waits for its reader alone, which waits
//!   for no writer and takes no lock that one may hold.
//! * An event is read once and whole, or counted as lost.

pub(crate) mod ring;
pub(crate) mod queue;
#[cfg(not(loom))]
pub(crate) mod journal;
#[cfg(not(loom))]
pub(crate) mod events;
#[cfg(not(loom))]
pub(crate) mod observers;
#[cfg(all(test, loom))]
mod models;

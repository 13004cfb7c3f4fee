//! Stops: the sums of allocated bytes at which threads leave the fast path of the hooks.
//!
//! Every thread counts the bytes that it allocates. Below its stop it does nothing else with a new
//! block. Asleep there is no stop; in a profile it is where the sampler's next success lies. A
//! change of the plan or of the rate clears the stops of all threads, so that each thread looks at
//! both with its next block.

use crate::mem::sync::Ordering::{Relaxed, SeqCst};
use crate::mem::sync::{AtomicU64, fence};

/// A stop that every thread reaches with its next block.
pub(crate) const AT_ONCE: u64 = 0;
/// A stop that no thread reaches.
#[cfg(not(loom))]
pub(crate) const NEVER: u64 = u64::MAX;

/// Sets the stop of this thread. `is_current` returns whether the plan and the rate that the stop
/// was computed from are still in force.
pub(crate) fn set(stop: &AtomicU64, sum: u64, is_current: impl FnOnce() -> bool) {
    stop.store(sum, Relaxed);
    // With the fence in `clear`: either this thread sees the change, or the change comes after it
    // and clears the stop.
    fence(SeqCst);
    if !is_current() {
        stop.store(AT_ONCE, Relaxed);
    }
}

/// Clears stops, after the plan or the rate has changed.
pub(crate) fn clear<'s>(stops: impl Iterator<Item = &'s AtomicU64>) {
    fence(SeqCst);
    // Not stored to where nothing is: that would make pages of unused counters resident.
    for stop in stops.filter(|stop| stop.load(Relaxed) != AT_ONCE) {
        stop.store(AT_ONCE, Relaxed);
    }
}

/// Clears the stops of all threads, after the plan or the rate has changed.
#[cfg(not(loom))]
pub(crate) fn clear_all() {
    clear(memreport::__private::thread_stops());
}

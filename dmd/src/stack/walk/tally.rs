//! How many stacks were walked, and how well: each thread counts its own.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::mem::concurrent_vec::ConcurrentVec;

/// Stacks since the tracker woke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) walked: u64,
    /// Those that end before their thread's outermost frame.
    pub(crate) truncated: u64,
}

/// Counts by the thread's number, a line of the processor's cache apart: walked, and truncated.
static COUNTS: ConcurrentVec<AtomicU64> = ConcurrentVec::new();
const APART: usize = 8;

/// Where a thread counts its walks; `None` when memory is short.
#[cold]
pub(crate) fn walked_by(number: u32) -> Option<&'static AtomicU64> {
    COUNTS.get_or_make(number as usize * APART)
}

/// Counts a truncated stack of this thread.
#[cold]
pub(crate) fn count_truncated(number: u32) {
    if let Some(count) = COUNTS.get_or_make(number as usize * APART + 1) {
        add_one(count);
    }
}

/// Only the thread itself writes its count: no need to lock the bus.
#[inline(always)]
pub(crate) fn add_one(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

/// Returns the sum of the counts of these threads.
pub(crate) fn sum(threads: impl Iterator<Item = u32>) -> Tally {
    let count = |index: usize| COUNTS.get(index).map_or(0, |count| count.load(Relaxed));
    threads.fold(Tally::default(), |tally, number| {
        let own = number as usize * APART;
        Tally { walked: tally.walked + count(own), truncated: tally.truncated + count(own + 1) }
    })
}

//! Counts of walked and of truncated stacks, one pair per thread.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::mem::concurrent_vec::ConcurrentVec;

/// The number of stacks since the start of tracking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) walked: u64,
    /// Stacks that end before their thread's outermost frame.
    pub(crate) truncated: u64,
}

/// The counts of each thread, walked and truncated, in a cache line of its own.
static COUNTS: ConcurrentVec<AtomicU64> = ConcurrentVec::new();
const STRIDE: usize = 8;

/// Returns the counter of a thread's walks; `None` when memory is short.
#[cold]
pub(crate) fn walk_count(number: u32) -> Option<&'static AtomicU64> {
    COUNTS.get_or_alloc(number as usize * STRIDE)
}

/// Counts a truncated stack of this thread.
#[cold]
pub(crate) fn count_truncated(number: u32) {
    if let Some(count) = COUNTS.get_or_alloc(number as usize * STRIDE + 1) {
        increment(count);
    }
}

/// Increments a counter of this thread. Only this thread writes it, so it needs no atomic
/// read-modify-write.
#[inline(always)]
pub(crate) fn increment(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

/// Returns the sum of the counts of these threads.
pub(crate) fn sum(threads: impl Iterator<Item = u32>) -> Tally {
    let count = |index: usize| COUNTS.get(index).map_or(0, |count| count.load(Relaxed));
    threads.fold(Tally::default(), |tally, number| {
        let own = number as usize * STRIDE;
        Tally { walked: tally.walked + count(own), truncated: tally.truncated + count(own + 1) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_threads_are_added() {
        // No thread of the tests has these numbers.
        const THREADS: [u32; 2] = [100_000, 100_001];
        let count = walk_count(THREADS[0]).expect("there is memory");
        increment(count);
        increment(count);
        increment(walk_count(THREADS[1]).expect("there is memory"));
        count_truncated(THREADS[1]);
        assert_eq!(sum(THREADS.into_iter()), Tally { walked: 3, truncated: 1 });
        assert_eq!(sum([THREADS[0], 100_002].into_iter()), Tally { walked: 2, truncated: 0 });
    }
}

//! Watches how the other threads change the heap.

use super::{HeapCounters, thread_counters, totals};

/// Watches how the heap changes, apart from the work of this thread.
#[derive(Clone, Copy, Debug)]
pub struct HeapWatch {
    begin: HeapCounters,
    /// The counters of this thread at the beginning, if it has counters of its own.
    own: Option<HeapCounters>,
}

impl HeapWatch {
    /// Begins to watch, on the thread whose work does not count.
    #[must_use]
    pub fn begin() -> Self {
        HeapWatch { own: thread_counters(), begin: totals() }
    }

    /// Returns the counters at the beginning.
    #[must_use]
    pub fn at_begin(&self) -> HeapCounters {
        self.begin
    }

    /// Returns how many bytes the other threads have freed since.
    #[must_use]
    pub fn freed(&self) -> u64 {
        let own = match (self.own, thread_counters()) {
            (Some(before), Some(now)) => now.freed_bytes.saturating_sub(before.freed_bytes),
            _ => 0,
        };
        totals().freed_bytes.saturating_sub(self.begin.freed_bytes).saturating_sub(own)
    }

    /// Returns by how many bytes the other threads have enlarged the heap since.
    #[must_use]
    pub fn growth(&self) -> i64 {
        // A thread may free more than it allocates.
        let live = |counters: HeapCounters| {
            i64::try_from(counters.allocated_bytes).unwrap_or(i64::MAX)
                - i64::try_from(counters.freed_bytes).unwrap_or(i64::MAX)
        };
        let own = match (self.own, thread_counters()) {
            (Some(before), Some(now)) => live(now) - live(before),
            _ => 0,
        };
        live(totals()) - live(self.begin) - own
    }
}

#[cfg(test)]
mod tests {
    use super::super::{allocated, freed};
    use super::*;

    #[test]
    fn a_watch_counts_the_work_of_other_threads() {
        const PART: i64 = 1 << 40; // More than all other tests together.
        let is_about = |found: i64, parts: i64| (found - parts * PART).abs() < PART / 2;
        let work = |made: usize, gone: usize| {
            allocated(made << 40);
            freed(gone << 40);
        };
        // This thread has counters of its own from its first block on.
        work(1, 1);
        let watch = HeapWatch::begin();
        work(3, 1);
        assert!(is_about(watch.growth(), 0), "own work: {}", watch.growth());
        std::thread::spawn(move || work(9, 2)).join().expect("it does not panic");
        assert!(is_about(watch.growth(), 7), "{}", watch.growth());
        assert!(is_about(i64::try_from(watch.freed()).unwrap_or(0), 2), "{}", watch.freed());
        std::thread::spawn(move || work(0, 8)).join().expect("it does not panic");
        assert!(is_about(watch.growth(), -1), "{}", watch.growth());
        work(0, 1);
    }
}

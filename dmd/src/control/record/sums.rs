//! The exact sums of a recording: the heap counters without the tracker's own blocks.

use memreport::__private::thread_counters;
use memreport::{HeapCounters, heap_counters};

/// The work that the sums leave out: all of the recorder's thread, and the tracker's own blocks on
/// other threads.
#[derive(Debug, Default)]
pub(super) struct OwnWork {
    /// The counters of the recorder's thread at its beginning.
    before: HeapCounters,
    /// The tracker's blocks that other threads have allocated and freed.
    elsewhere: HeapCounters,
}

impl OwnWork {
    /// Begins to leave out the work of this thread.
    pub(super) fn of_this_thread() -> Self {
        let before = thread_counters().unwrap_or_default();
        OwnWork { before, elsewhere: HeapCounters::default() }
    }

    /// Returns the counters of this moment without the work of this thread.
    pub(super) fn counters(&self) -> Option<HeapCounters> {
        let own =
            thread_counters().map_or_else(HeapCounters::default, |now| less(now, self.before));
        Some(less(heap_counters()?, own))
    }

    /// Returns these counters without the tracker's blocks of other threads.
    pub(super) fn without_elsewhere(&self, counters: HeapCounters) -> HeapCounters {
        less(counters, self.elsewhere)
    }

    /// Counts a block of the tracker's that another thread has allocated.
    pub(super) fn allocated(&mut self, usable: usize) {
        self.elsewhere.allocated_bytes += usable as u64;
        self.elsewhere.allocations += 1;
    }

    /// Counts a block of the tracker's that another thread has freed.
    pub(super) fn freed(&mut self, usable: usize) {
        self.elsewhere.freed_bytes += usable as u64;
        self.elsewhere.frees += 1;
    }
}

/// Returns the difference. A counter is never below what it was, unless it stands for other slots.
fn less(counters: HeapCounters, part: HeapCounters) -> HeapCounters {
    HeapCounters {
        allocated_bytes: counters.allocated_bytes.saturating_sub(part.allocated_bytes),
        allocations: counters.allocations.saturating_sub(part.allocations),
        freed_bytes: counters.freed_bytes.saturating_sub(part.freed_bytes),
        frees: counters.frees.saturating_sub(part.frees),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trackers_blocks_of_other_threads_are_left_out() {
        let mut own = OwnWork::default();
        own.allocated(100);
        own.allocated(20);
        own.freed(100);
        let counters =
            HeapCounters { allocated_bytes: 1000, allocations: 10, freed_bytes: 300, frees: 3 };
        let expected =
            HeapCounters { allocated_bytes: 880, allocations: 8, freed_bytes: 200, frees: 2 };
        assert_eq!(own.without_elsewhere(counters), expected);
        // Slots that other threads have taken over may count less than was counted here.
        assert_eq!(own.without_elsewhere(HeapCounters::default()), HeapCounters::default());
    }
}

//! The starts of huge blocks: these extend into so many spans that marking each would take long,
//! and memory for leaves that have no other block.

#[cfg(all(test, loom))]
mod models;

use crate::mem::concurrent_vec::ConcurrentVec;
use crate::mem::sync::Ordering::{Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU64, AtomicUsize, const_fn};

/// The number of further spans from which on a block is huge: 64 MiB.
pub(super) const HUGE_SPANS: usize = if cfg!(loom) { 1 } else { 64 };

/// The starts of the huge blocks in the table, in no order. There are few of them.
pub(super) struct HugeStarts {
    /// The addresses; 0 is a free place.
    starts: ConcurrentVec<AtomicU64>,
    /// The number of places that were ever used.
    used: AtomicUsize,
}

impl HugeStarts {
    const_fn! {
        pub(super) fn new() -> Self {
            HugeStarts { starts: ConcurrentVec::new(), used: AtomicUsize::new(0) }
        }
    }

    /// Adds the start of a block. When memory is short, the block is not found from its inside.
    pub(super) fn add(&self, start: usize) {
        for index in 0.. {
            let Some(place) = self.starts.get_or_alloc(index) else { return };
            // Release, with the Acquire in `iter`: a reader that sees the start finds its block.
            if place.compare_exchange(0, start as u64, Release, Relaxed).is_ok() {
                self.used.fetch_max(index + 1, Release);
                return;
            }
        }
    }

    /// Removes the start of a block.
    pub(super) fn remove(&self, start: usize) {
        for index in 0..self.used.load(Acquire) {
            let Some(place) = self.starts.get(index) else { return };
            // Relaxed: a reader that still sees the start finds no block in its word.
            if place.compare_exchange(start as u64, 0, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Returns the starts. A block may be removed meanwhile, so its word decides.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        let places = (0..self.used.load(Acquire)).filter_map(|index| self.starts.get(index));
        // Acquire, with the Release in `add`.
        let starts = places.map(|place| place.load(Acquire));
        starts.filter_map(|start| usize::try_from(start).ok().filter(|start| *start != 0))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn places_of_removed_starts_are_used_again() {
        let starts = HugeStarts::new();
        let all = || starts.iter().collect::<Vec<_>>();
        assert!(all().is_empty());
        [1000, 2000, 3000].into_iter().for_each(|start| starts.add(start));
        starts.remove(2000);
        starts.remove(4000);
        assert_eq!(all(), [1000, 3000]);
        starts.add(5000);
        assert_eq!(all(), [1000, 5000, 3000]);
    }
}

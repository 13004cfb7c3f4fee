//! The starts of huge blocks: these extend into so many spans that marking each would take long,
//! and memory for leaves that have no other block.

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

/// Loom models. Each also runs with a planted defect, and must fail then.
#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::mem::models::model;

    /// One thread replaces a huge block while another one allocates one and a collection reads.
    fn owners_beside_a_reader(add: fn(&HugeStarts, usize)) {
        let starts = Arc::new(HugeStarts::new());
        starts.add(10);
        let other = {
            let starts = Arc::clone(&starts);
            thread::spawn(move || {
                starts.remove(10);
                add(&starts, 20);
            })
        };
        add(&starts, 30);
        let seen: Vec<usize> = starts.iter().collect();
        assert!(seen.contains(&30) && seen.iter().all(|start| [10, 20, 30].contains(start)));
        other.join().unwrap();
        let mut left: Vec<usize> = starts.iter().collect();
        left.sort_unstable();
        assert_eq!(left, [20, 30]);
    }

    /// Takes a place that another thread may take, too.
    fn add_without_an_exchange(starts: &HugeStarts, start: usize) {
        let is_free =
            |index: &usize| starts.starts.get_or_alloc(*index).unwrap().load(Relaxed) == 0;
        let index = (0..).find(is_free).unwrap();
        starts.starts.get_or_alloc(index).unwrap().store(start as u64, Release);
        starts.used.fetch_max(index + 1, Release);
    }

    #[test]
    fn no_huge_block_is_lost() {
        model(3, || owners_beside_a_reader(HugeStarts::add));
    }

    #[test]
    #[should_panic = "assertion"]
    fn planted_a_place_is_taken_without_an_exchange() {
        model(3, || owners_beside_a_reader(add_without_an_exchange));
    }

    /// One thread stores a block's word and adds its start; another one finds the start.
    fn a_word_before_its_start(add: fn(&HugeStarts, usize)) {
        let shared = Arc::new((HugeStarts::new(), AtomicU64::new(0)));
        // Mapping the places would order the word, too.
        shared.0.starts.get_or_alloc(0).unwrap();
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(7, Relaxed);
                add(&shared.0, 10);
            })
        };
        for start in shared.0.iter() {
            assert_eq!((start, shared.1.load(Relaxed)), (10, 7));
        }
        other.join().unwrap();
        assert_eq!(shared.0.iter().collect::<Vec<_>>(), [10]);
    }

    /// Adds a start without an order.
    fn add_relaxed(starts: &HugeStarts, start: usize) {
        starts.starts.get_or_alloc(0).unwrap().store(start as u64, Relaxed);
        starts.used.fetch_max(1, Relaxed);
    }

    #[test]
    fn who_finds_a_huge_block_finds_its_word() {
        model(3, || a_word_before_its_start(HugeStarts::add));
    }

    #[test]
    #[should_panic = "assertion"]
    fn planted_a_start_is_added_without_an_order() {
        model(3, || a_word_before_its_start(add_relaxed));
    }
}

//! Loom models of the cache of stacks and of the slots of threads. See `mem::models` for how to run
//! them.
#![expect(unsafe_code, reason = "takes and releases slots")]

use std::sync::Arc;

use loom::cell::Cell;
use loom::thread;

use super::stack_cache::{StackCache, StackHash};
use super::thread_slots::ThreadSlots;
use crate::mem::interner::Interner;
use crate::mem::lazy_slice::Zeroed;
use crate::mem::models::model;
use crate::table::packed_block::SiteId;

/// Fails if `StackCache` stores or loads the word with the site relaxed.
#[test]
fn a_thread_that_finds_a_site_sees_its_content() {
    model(3, || {
        let shared = Arc::new((StackCache::new(), Interner::new(100)));
        let hash = |frame| StackHash::EMPTY.with_frame(frame);
        // The cache is mapped before, so that this does not order what follows.
        shared.0.insert(hash(1), SiteId::from_number(99));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (cache, sites) = &*shared;
                cache.insert(hash(2), SiteId::from_number(sites.intern((0, 7))));
            })
        };
        let (cache, sites) = &*shared;
        if let Some(site) = cache.get(hash(2)) {
            assert_eq!(sites.get(site.number()), Some((0, 7)));
        }
        writer.join().unwrap();
        assert!(cache.get(hash(2)).is_some());
    });
}

/// Fails if `StackCache` loads the word with the site relaxed, or never grows.
#[test]
fn a_cache_that_grows_has_the_right_site_or_none() {
    model(2, || {
        let shared = Arc::new((StackCache::new(), Interner::new(100)));
        let hash = |frame| StackHash::EMPTY.with_frame(frame);
        // The row is full, and an entry was replaced: the next insertion grows the cache.
        (1..=5).for_each(|frame| shared.0.insert(hash(frame), SiteId::from_number(99)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (cache, sites) = &*shared;
                cache.insert(hash(6), SiteId::from_number(sites.intern((0, 7))));
            })
        };
        let (cache, sites) = &*shared;
        cache.insert(hash(7), SiteId::from_number(99));
        if let Some(site) = cache.get(hash(6)) {
            assert_eq!(sites.get(site.number()), Some((0, 7)));
        }
        other.join().unwrap();
        // Both may have had the same entry, and then neither is found.
        cache.insert(hash(8), SiteId::from_number(98));
        assert_eq!(cache.get(hash(8)), Some(SiteId::from_number(98)));
        let in_small = (1..=5).filter(|frame| cache.get(hash(*frame)).is_some());
        assert_eq!(in_small.count(), 0, "the small cache is no longer read");
    });
}

struct Counter(Cell<u64>);

// SAFETY: loom has no zeroed memory: it calls `zero`.
unsafe impl Zeroed for Counter {
    fn zero() -> Self {
        Counter(Cell::new(0))
    }
}

/// Fails if `ThreadSlots` takes or releases a slot relaxed, or takes it by a load and a store.
#[test]
fn a_slot_belongs_to_one_thread_at_a_time() {
    model(3, || {
        let slots = Arc::new(ThreadSlots::<Counter>::new());
        // Loom fails if another thread uses the value meanwhile.
        let count = |slots: &ThreadSlots<Counter>| {
            let taken = slots.take().unwrap();
            taken.value.0.set(taken.value.0.get() + 1);
            // SAFETY: taken above, and not used any more.
            unsafe { slots.release(taken.index) };
        };
        let other = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || count(&slots))
        };
        count(&slots);
        other.join().unwrap();
        let sum: u64 = (0..2).map(|_| slots.take().unwrap().value.0.get()).sum();
        assert_eq!(sum, 2);
    });
}

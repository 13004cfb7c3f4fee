//! Loom models of the starts of huge blocks. Each also runs with a planted defect, and must fail
//! then.

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
    let is_free = |index: &usize| starts.starts.get_or_alloc(*index).unwrap().load(Relaxed) == 0;
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

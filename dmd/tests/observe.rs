//! Observers: the properties of an allocation in the log.

use std::hint::black_box;
use std::time::Instant;

use dmd::observe::{Allocation, Observer, Sampling};

dmd::global_allocator!();

#[inline(never)]
fn plant(bytes: usize) -> Vec<u8> {
    black_box(vec![1; bytes])
}

/// Returns the kernel's number of this thread.
fn own_number() -> u32 {
    let path = std::fs::read_link("/proc/thread-self").expect("the system is Linux");
    let name = path.file_name().and_then(|name| name.to_str()).expect("it ends in a number");
    name.parse().expect("it ends in a number")
}

/// Returns the logged allocations of this requested size.
fn logged(observer: &mut Observer, bytes: usize) -> Vec<Allocation> {
    let log = observer.drain_allocations_log().expect("it observes");
    log.entries.iter().filter(|entry| entry.requested() == bytes).copied().collect()
}

#[test]
fn an_allocation_has_its_block_time_stack_thread_and_scopes() {
    let mut observer = Observer::start().expect("the allocator is declared");
    let begin = Instant::now();
    let spawned = std::thread::spawn(|| {
        memreport::scope!("request");
        memreport::scope!("search");
        (plant(70_001), own_number())
    });
    let (block, thread) = spawned.join().expect("it does not panic");
    let own_block = plant(70_002);

    let found = logged(&mut observer, 70_001);
    let [allocation] = found[..] else { panic!("{found:?}") };
    assert_eq!(allocation.address(), block.as_ptr().addr());
    assert!((70_001..70_100).contains(&allocation.usable()), "{allocation:?}");
    let time = allocation.time().expect("an observer is active");
    assert!(begin <= time && time <= Instant::now(), "{allocation:?}");
    assert_eq!(allocation.thread(), thread);
    assert_eq!(allocation.scopes(), ["request", "search"]);
    assert!((allocation.weight() - 1.0).abs() < f64::EPSILON);

    let stack = allocation.stack();
    assert!(!stack.is_empty());
    assert!(stack.frames().count() > 2, "{:?}", stack.frames().collect::<Vec<_>>());
    let functions = stack.functions();
    let place = |part: &str| functions.iter().position(|name| name.contains(part));
    let (planted, caller) = (place("observe::plant"), place("observe::an_allocation"));
    assert!(planted.is_some() && planted < caller, "{functions:#?}");

    // It was logged before the log was drained, which empties it.
    assert!(logged(&mut observer, 70_002).is_empty());
    let site = dmd::allocation_site(&own_block[0]).expect("it lives");
    assert_eq!((site.thread(), site.scopes()), (own_number(), Vec::new()));

    // One of two stands for two.
    drop(observer);
    let mut observer = Observer::sampling(Sampling::Blocks(0.5)).expect("a probability");
    let blocks: Vec<_> = (0..200).map(|_| plant(70_003)).collect();
    let found = logged(&mut observer, 70_003);
    assert!((50..150).contains(&found.len()), "{} of {}", found.len(), blocks.len());
    let weights: Vec<f64> = found.iter().map(Allocation::weight).collect();
    assert!(weights.iter().all(|weight| (weight - 2.0).abs() < 1e-3), "{weights:?}");
}

#[test]
fn a_log_has_its_newest_entries_and_counts_the_others() {
    let mut observer = Observer::start().expect("the allocator is declared");
    drop(plant(80_001));
    let log = observer.drain_allocations_log().expect("it observes");
    assert!(!log.overflowed && log.lost == 0, "{log:?}");
    observer.set_max_log_length(2).expect("a length");
    (0..5).for_each(|_| drop(plant(80_002)));
    assert!(observer.log_overflowed());
    let log = observer.drain_allocations_log().expect("it observes");
    assert!(log.overflowed && log.lost >= 3 && log.entries.len() <= 2, "{log:?}");
    assert!(!observer.log_overflowed());
}

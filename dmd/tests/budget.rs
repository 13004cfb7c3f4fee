//! Budgets for what code allocates: kept, broken, and undisturbed by other threads.

use std::sync::atomic::{AtomicBool, Ordering};

use dmd::testing::{Budget, Spent};

dmd::global_allocator!();

#[track_caller]
fn broken(budget: Budget, work: impl FnOnce()) -> String {
    budget
        .check(|_| work())
        .map_or_else(|exceeded| exceeded.to_string(), |spent| format!("{spent:?}"))
}

#[test]
fn what_was_spent_is_told() {
    let spent = Budget::new().assert(|_| {
        let first = vec![1_u8; 1000];
        drop(first);
        vec![1_u8; 500]
    });
    let Spent { blocks, bytes, peak, left, .. } = spent;
    // glibc rounds up to 8 more than a multiple of 16.
    assert_eq!((blocks, bytes, peak, left), (2, 1000 + 504, 1000, Vec::new()));
}

#[test]
fn each_limit_is_named_when_it_is_not_kept() {
    let work = || _ = std::mem::ManuallyDrop::new((vec![1_u8; 1000], vec![1_u8; 500]));
    let table = [
        (Budget::new().max_blocks(1), "2 blocks were allocated, and at most 1 may be"),
        (Budget::new().max_bytes(1100), "1504 bytes were allocated, and at most 1100 may be"),
        (Budget::new().max_peak(1499), "1504 bytes were in use at once, and at most 1499 may be"),
        (Budget::new().no_leak(), "1504 bytes in 2 blocks were not given back: of 1000, 504"),
        (
            Budget::new().max_blocks(0).no_leak(),
            "2 blocks were allocated, and at most 0 may be\n\
             1504 bytes in 2 blocks were not given back: of 1000, 504",
        ),
    ];
    for (budget, expected) in table {
        assert_eq!(broken(budget, work), expected);
    }
}

#[test]
fn limits_that_are_met_are_kept() {
    let budget = Budget::new().max_blocks(2).max_bytes(1504).max_peak(1504).no_leak();
    budget.assert(|_| (vec![1_u8; 1000], vec![1_u8; 500]));
    // Growing counts each time.
    let spent = Budget::new().assert(|_| {
        let mut bytes = Vec::with_capacity(8);
        bytes.extend([1_u8; 100]);
    });
    assert_eq!(spent.blocks, 2);
}

#[test]
fn what_lived_before_is_not_of_the_budget() {
    let before = vec![1_u8; 1000];
    let spent = Budget::new().no_leak().assert(|_| drop(before));
    assert_eq!((spent.blocks, spent.peak), (0, 0));
}

#[test]
fn threads_that_join_in_count() {
    let spent = Budget::new().assert(|threads| {
        let mut handed_over = Vec::with_capacity(2);
        let threads = threads.clone();
        let thread = std::thread::spawn(move || threads.join_in(|| vec![1_u8; 100_000]));
        handed_over.push(thread.join().expect("it returns"));
        // Given back here, though it was made there.
        drop(handed_over);
    });
    assert!(spent.bytes >= 100_000 && spent.peak >= 100_000, "{spent:?}");
    // What std makes for a thread, the thread gives back outside.
    assert!(spent.left.iter().all(|bytes| *bytes < 1000), "{spent:?}");
}

#[test]
fn a_thread_that_panics_is_done_and_counts() {
    let mut spent = Budget::new().assert(|threads| {
        let threads = threads.clone();
        let work = move || {
            let bytes = vec![1_u8; 100_000];
            std::panic::resume_unwind(Box::new(bytes.len()));
        };
        assert!(std::thread::spawn(move || threads.join_in(work)).join().is_err());
    });
    assert!(spent.bytes >= 100_000, "{spent:?}");
    // The thread's own handle may outlive it; its bytes do not.
    spent.left.retain(|bytes| *bytes >= 100_000);
    assert_eq!(spent.left, [0; 0]);
}

#[test]
fn threads_that_do_not_join_in_do_not_count() {
    let spent = Budget::new().assert(|_| {
        std::thread::scope(|scope| {
            scope.spawn(|| vec![1_u8; 100_000]);
        });
    });
    assert!(spent.bytes < 100_000, "{spent:?}");
}

#[test]
fn other_threads_do_not_disturb() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(vec![0_u8; 100]);
            }
        });
        for _ in 0..100 {
            Budget::new().max_blocks(1).max_bytes(104).no_leak().assert(|_| vec![1_u8; 100]);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn budgets_can_be_within_budgets() {
    let outer = Budget::new().no_leak().assert(|_| {
        let before = vec![1_u8; 100];
        let inner = Budget::new().assert(|_| vec![1_u8; 200]);
        assert_eq!(inner.blocks, 1);
        dmd::assert_fully_reported!(before);
    });
    assert!(outer.blocks >= 2, "{outer:?}");
}

#[test]
fn a_panic_ends_the_watching() {
    let panicked = std::panic::catch_unwind(|| Budget::new().assert(|_| panic!("on the way")));
    assert!(panicked.is_err());
    assert_eq!(Budget::new().assert(|_| ()).blocks, 0);
}

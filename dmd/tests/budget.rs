//! Budgets for what code allocates: kept, broken, and undisturbed by other threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use dmd::testing::{Budget, Spent, Threads};

dmd::global_allocator!();

#[track_caller]
fn broken(budget: Budget, work: impl FnOnce()) -> String {
    budget
        .check(|_| work())
        .map_or_else(|exceeded| exceeded.to_string(), |spent| format!("{spent:?}"))
}

/// The bytes of the vector's block, as the allocator has it. glibc rounds up to 8 more than a multiple of 16, and gives 16 more
/// where a free chunk would otherwise leave a rest too small to be one.
fn usable(bytes: &Vec<u8>) -> usize {
    let rounded = (bytes.capacity() - 8).next_multiple_of(16) + 8;
    let usable = memreport::measure(bytes).bytes;
    assert!([rounded, rounded + 16].contains(&usable), "{usable} for {}", bytes.capacity());
    usable
}

/// A block of 1,000 bytes and one of 500, and what they have.
fn two_blocks() -> ([Vec<u8>; 2], [usize; 2]) {
    let blocks = [vec![1_u8; 1000], vec![1_u8; 500]];
    let sizes = [usable(&blocks[0]), usable(&blocks[1])];
    (blocks, sizes)
}

#[test]
fn what_was_spent_is_told() {
    let (mut first, mut second) = (0, 0);
    let spent = Budget::new().assert(|_| {
        let bytes = vec![1_u8; 1000];
        first = usable(&bytes);
        drop(bytes);
        let bytes = vec![1_u8; 500];
        second = usable(&bytes);
        bytes
    });
    let Spent { blocks, bytes, peak, left, .. } = spent;
    assert_eq!((blocks, bytes, peak, left), (2, first + second, first, Vec::new()));
}

#[test]
fn each_limit_is_named_when_it_is_not_kept() {
    let told = Cell::new([0; 2]);
    let work = || {
        let (blocks, sizes) = two_blocks();
        told.set(sizes);
        let _ = std::mem::ManuallyDrop::new(blocks);
    };
    let table = [
        (Budget::new().max_blocks(1), "2 blocks were allocated, and at most 1 may be"),
        (Budget::new().max_bytes(1100), "SUM bytes were allocated, and at most 1100 may be"),
        (Budget::new().max_peak(1499), "SUM bytes were in use at once, and at most 1499 may be"),
        (Budget::new().no_leak(), "SUM bytes in 2 blocks were not given back: of FIRST, SECOND"),
        (
            Budget::new().max_blocks(0).no_leak(),
            "2 blocks were allocated, and at most 0 may be\n\
             SUM bytes in 2 blocks were not given back: of FIRST, SECOND",
        ),
    ];
    for (budget, expected) in table {
        let text = broken(budget, work);
        let [first, second] = told.get();
        let words = [("SUM", first + second), ("FIRST", first), ("SECOND", second)];
        let expected = words
            .iter()
            .fold(expected.to_owned(), |text, (word, size)| text.replace(word, &size.to_string()));
        assert_eq!(text, expected);
    }
}

#[test]
fn limits_that_are_met_are_kept() {
    let told = Cell::new(0);
    let work = |_: &Threads| {
        let (blocks, sizes) = two_blocks();
        told.set(sizes.iter().sum());
        blocks
    };
    let met = Budget::new().assert(work).bytes;
    for limit in [met, met - 1] {
        let budget = Budget::new().max_blocks(2).max_bytes(limit).max_peak(limit).no_leak();
        let is_kept = budget.check(work).is_ok();
        // Each time the allocator may have other chunks to give.
        assert_eq!(is_kept, told.get() <= limit, "{} bytes, at most {limit}", told.get());
    }
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
            let mut size = 0;
            let spent = Budget::new().max_blocks(1).no_leak().assert(|_| {
                let bytes = vec![1_u8; 100];
                size = usable(&bytes);
                bytes
            });
            assert_eq!(spent.bytes, size);
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

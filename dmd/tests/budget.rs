//! Budgets: limits that are kept or exceeded, and not disturbed by other threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use dmd::testing::{Budget, Spent, Threads};

dmd::global_allocator!();

#[track_caller]
fn exceeded(budget: Budget, work: impl FnOnce()) -> String {
    budget
        .check(|_| work())
        .map_or_else(|exceeded| exceeded.to_string(), |spent| format!("{spent:?}"))
}

/// Returns the usable bytes of the vector's block. glibc rounds up to a multiple of 16 plus 8. It
/// adds 16 if the rest of a free chunk would be too small for a chunk. musl keeps the size.
fn usable(bytes: &Vec<u8>) -> usize {
    let asked = bytes.capacity();
    let rounded = (asked - 8).next_multiple_of(16) + 8;
    let usable = memreport::measure(bytes).bytes;
    let is_known = match cfg!(target_env = "musl") {
        true => usable == asked,
        false => [rounded, rounded + 16].contains(&usable),
    };
    assert!(is_known, "{usable} for {asked}");
    usable
}

/// The line at which `two_blocks` allocates.
const TWO_BLOCKS_AT: u32 = line!() + 4;

/// Returns blocks of 1000 and 500 bytes, and their usable bytes.
fn two_blocks() -> ([Vec<u8>; 2], [usize; 2]) {
    let blocks = [vec![1_u8; 1000], vec![1_u8; 500]];
    let sizes = [usable(&blocks[0]), usable(&blocks[1])];
    (blocks, sizes)
}

#[test]
fn spent_contains_the_sums() {
    let (mut first, mut second) = (0, 0);
    let spent = Budget::new().assert(|_| {
        let bytes = vec![1_u8; 1000];
        first = usable(&bytes);
        drop(bytes);
        let bytes = vec![1_u8; 500];
        second = usable(&bytes);
        bytes
    });
    let Spent { blocks, bytes, peak, at_peak, leaked, .. } = spent;
    assert_eq!((blocks, bytes, peak, leaked), (2, first + second, first, Vec::new()));
    assert_eq!(at_peak, [first]);
}

#[test]
fn the_blocks_at_the_peak_are_those_of_that_very_moment() {
    let mut sizes = [0; 4];
    let spent = Budget::new().assert(|_| {
        let before = vec![1_u8; 4000];
        let outside = vec![1_u8; 1000];
        sizes[0] = usable(&before);
        sizes[1] = usable(&outside);
        drop(before);
        // The peak: `outside` and these, without `before`.
        let [two, three] = [vec![1_u8; 3000], vec![1_u8; 2000]];
        sizes[2..].copy_from_slice(&[usable(&two), usable(&three)]);
        drop((outside, two));
        // As much as is freed before it: no new peak.
        vec![1_u8; 1000]
    });
    let [_, outside, two, three] = sizes;
    assert_eq!(spent.at_peak, [two, three, outside]);
    assert_eq!(spent.peak, outside + two + three);
}

#[test]
fn each_exceeded_limit_is_named() {
    let sizes_seen = Cell::new([0; 2]);
    let work = || {
        let (blocks, sizes) = two_blocks();
        sizes_seen.set(sizes);
        let _ = std::mem::ManuallyDrop::new(blocks);
    };
    let table = [
        (Budget::new().max_blocks(1), "2 blocks were allocated, and at most 1 may be"),
        (Budget::new().max_bytes(1100), "SUM bytes were allocated, and at most 1100 may be"),
        (
            Budget::new().max_peak(1499),
            "SUM bytes were in use at once, and at most 1499 may be\n  SUM bytes in 2 blocks: PLACE",
        ),
        (
            Budget::new().no_leak(),
            "SUM bytes in 2 blocks were not given back\n  SUM bytes in 2 blocks: PLACE",
        ),
        (
            Budget::new().max_blocks(0).no_leak(),
            "2 blocks were allocated, and at most 0 may be\n\
             SUM bytes in 2 blocks were not given back\n  SUM bytes in 2 blocks: PLACE",
        ),
    ];
    for (budget, expected) in table {
        let text = exceeded(budget, work);
        let sum: usize = sizes_seen.get().iter().sum();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/budget.rs");
        let place = format!("budget::two_blocks ({file}:{TWO_BLOCKS_AT})");
        let expected = expected.replace("SUM", &sum.to_string()).replace("PLACE", &place);
        assert_eq!(text, expected);
    }
}

#[test]
fn limits_that_are_met_are_kept() {
    let sizes_seen = Cell::new(0);
    let work = |_: &Threads| {
        let (blocks, sizes) = two_blocks();
        sizes_seen.set(sizes.iter().sum());
        blocks
    };
    let met = Budget::new().assert(work).bytes;
    for limit in [met, met - 1] {
        let budget = Budget::new().max_blocks(2).max_bytes(limit).max_peak(limit).no_leak();
        let is_kept = budget.check(work).is_ok();
        // The allocator may serve the blocks from other chunks each time.
        assert_eq!(
            is_kept,
            sizes_seen.get() <= limit,
            "{} bytes, at most {limit}",
            sizes_seen.get()
        );
    }
    // Growing counts each time.
    let spent = Budget::new().assert(|_| {
        let mut bytes = Vec::with_capacity(8);
        bytes.extend([1_u8; 100]);
    });
    assert_eq!(spent.blocks, 2);
}

#[test]
fn older_blocks_do_not_count() {
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
        // Freed here, but allocated on the other thread.
        drop(handed_over);
    });
    assert!(spent.bytes >= 100_000 && spent.peak >= 100_000, "{spent:?}");
    // The thread frees std's own blocks after it has left the budget.
    assert!(spent.leaked.iter().all(|bytes| *bytes < 1000), "{spent:?}");
}

#[test]
fn a_thread_that_panics_counts() {
    let mut spent = Budget::new().assert(|threads| {
        let threads = threads.clone();
        let work = move || {
            let bytes = vec![1_u8; 100_000];
            std::panic::resume_unwind(Box::new(bytes.len()));
        };
        assert!(std::thread::spawn(move || threads.join_in(work)).join().is_err());
    });
    assert!(spent.bytes >= 100_000, "{spent:?}");
    // The thread's handle may outlive it; the panic's bytes do not.
    spent.leaked.retain(|bytes| *bytes >= 100_000);
    assert_eq!(spent.leaked, [0; 0]);
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
        let _stops = Stops(&stop);
        for _ in 0..100 {
            let mut size = 0;
            let spent = Budget::new().max_blocks(1).no_leak().assert(|_| {
                let bytes = vec![1_u8; 100];
                size = usable(&bytes);
                bytes
            });
            assert_eq!(spent.bytes, size);
        }
    });
}

/// Ends the other thread, also where the test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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
fn a_panic_ends_the_watch() {
    let panicked = std::panic::catch_unwind(|| Budget::new().assert(|_| panic!("on the way")));
    assert!(panicked.is_err());
    assert_eq!(Budget::new().assert(|_| ()).blocks, 0);
}

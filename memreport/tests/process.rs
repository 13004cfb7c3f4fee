//! Tests the figures of the process and its allocator, in a program that declares its allocator.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, PoisonError};
use std::thread;

use memreport::{Collector, Kind, Snapshot, Units, distinguished, snapshot};

memreport::global_allocator!();

/// Held by tests of which one changes the heap while the other compares its figures.
static HEAP: Mutex<()> = Mutex::new(());

/// Returns the sum of all reports at or below a path.
fn below(snapshot: &Snapshot, path: &str) -> i64 {
    let is_below = |other: &str| {
        other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let reports = snapshot.reports.iter().filter(|report| is_below(&report.path));
    reports.map(|report| report.amount).sum()
}

#[test]
fn what_is_committed_is_all_that_it_consists_of() {
    let _alone = HEAP.lock().unwrap_or_else(PoisonError::into_inner);
    let blocks: Vec<Vec<u8>> = (0..1000).map(|_| vec![1; 3000]).collect();
    let holes: Vec<_> = blocks.into_iter().enumerate().filter(|(at, _)| at % 2 == 0).collect();
    let snapshot = snapshot();
    drop(holes);
    let committed = below(&snapshot, "heap-committed");
    let other_code = below(&snapshot, "heap-committed/other-code");
    let overhead = below(&snapshot, "explicit/heap-overhead");
    assert_eq!(committed, below(&snapshot, "heap-allocated") + overhead + other_code);
    assert!(below(&snapshot, "explicit/heap-overhead/bin-unused") >= 500 * 3000);
    assert!(other_code < 1 << 20, "{other_code}");
    let own = snapshot.reports.iter().filter(|report| report.path.starts_with("explicit/heap-o"));
    assert!(own.clone().count() > 1 && own.clone().all(|report| report.kind == Kind::NonHeap));
    assert_eq!(snapshot.allocator, Some("glibc"));
}

#[test]
fn what_is_resident_is_all_that_is_mapped() {
    let snapshot = snapshot();
    let (resident, mapped) = (below(&snapshot, "resident"), below(&snapshot, "rss"));
    // Other tests run meanwhile, and the two figures are read one after the other.
    assert!((resident - mapped).abs() < 8 << 20, "{resident} {mapped}");
    assert!(below(&snapshot, "rss/program") > 0 && below(&snapshot, "rss/libraries") > 0);
    assert_eq!(below(&snapshot, "rss/stacks"), below(&snapshot, "explicit/thread-stacks"));
    // The sum stands beside the tree.
    let (pss, kinds) = (below(&snapshot, "pss"), ["program", "libraries", "anonymous", "heap"]);
    assert!(pss <= 2 * mapped, "{pss} {mapped}");
    for sum in ["resident-unique", "pss", "swap", "page-faults-soft", "page-faults-hard"] {
        assert_eq!(snapshot.reports.iter().filter(|it| it.path == sum).count(), 1, "{sum}");
    }
    for kind in kinds.map(|kind| format!("/{kind}")) {
        let [rss, pss] = ["rss", "pss"].map(|tree| below(&snapshot, &format!("{tree}{kind}")));
        assert!(0 < pss && pss <= rss, "{kind}: {pss} of {rss}");
    }
}

#[test]
fn the_stack_of_a_thread_that_runs_is_found() {
    /// Uses this much of the stack, and never waits in the kernel.
    fn busy(is_deep: &AtomicBool, is_over: &AtomicBool) {
        let room = black_box([1_u8; 300 << 10]);
        // Release, with the Acquire of the test: the stack has been used.
        is_deep.store(true, Release);
        // Acquire, with the Release of the test.
        while !is_over.load(Acquire) {
            std::hint::spin_loop();
        }
        assert_eq!(black_box(&room)[4096], 1);
    }
    let (is_deep, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("busy".to_owned());
        builder.spawn_scoped(scope, || busy(&is_deep, &is_over)).expect("a thread is to be had");
        while !is_deep.load(Acquire) {
            thread::yield_now();
        }
        let snapshot = snapshot();
        is_over.store(true, Release);
        let is_busy = |path: &str| path.starts_with("explicit/thread-stacks/busy (tid=");
        let stack = snapshot.reports.iter().find(|report| is_busy(&report.path));
        let bytes = stack.expect("it has allocated").amount;
        assert!((300 << 10..2 << 20).contains(&bytes), "{bytes}");
    });
}

#[test]
fn a_quick_collection_counts_no_pages() {
    let quick = Collector::default().quick().snapshot();
    for path in ["rss", "pss", "heap-committed", "explicit/heap-overhead", "threads"] {
        assert!(!quick.reports.iter().any(|report| report.path.starts_with(path)), "{path}");
    }
    assert!(below(&quick, "resident") > 0 && below(&quick, "heap-allocated") > 0);
}

#[test]
fn single_figures_need_no_collection() {
    let kept = vec![1_u8; 1 << 20];
    assert!(distinguished::heap_allocated().expect("declared") >= 1 << 20);
    assert!(distinguished::heap_committed().expect("glibc says") >= 1 << 20);
    let fraction = distinguished::heap_overhead_fraction().expect("glibc says");
    assert!((0..=10_000).contains(&fraction), "{fraction}");
    drop(kept);
}

#[test]
fn a_busy_program_has_statistics_at_any_moment() {
    let _alone = HEAP.lock().unwrap_or_else(PoisonError::into_inner);
    let (rounds, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let kept = vec![1_u8; 1 << 20];
    let replace_blocks = || {
        while !is_over.load(Acquire) {
            drop(black_box(vec![1_u8; 50_000]));
            rounds.fetch_add(1, Release);
        }
    };
    let missing = thread::scope(|scope| {
        scope.spawn(replace_blocks);
        scope.spawn(replace_blocks);
        while rounds.load(Acquire) < 10 {
            thread::yield_now();
        }
        let missing = (0..2000).filter(|_| distinguished::heap_committed().is_err()).count();
        is_over.store(true, Release);
        missing
    });
    assert_eq!(missing, 0, "of 2000");
    drop(kept);
}

#[test]
fn names_of_the_process_are_refused_to_other_figures() {
    for report in snapshot().reports {
        let tree = report.path.split('/').next().expect("a path has a segment");
        let name: &'static str = tree.to_owned().leak();
        let refused = distinguished::register(name, Units::Bytes, "", || None);
        assert!(matches!(refused, Err(distinguished::RefusedName::OfTheProcess { .. })), "{name}");
    }
}

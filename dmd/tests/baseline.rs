//! Tests that check what they allocated themselves, many of them in one binary and in parallel.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use dmd::testing::{Baseline, Limits};
use memreport::{MallocSizeOf, Ops};

dmd::global_allocator!();

static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/words", WORDS, "All words.");

struct Index {
    pages: Vec<u8>,
    /// Not measured.
    _forgotten: Vec<u8>,
}

impl MallocSizeOf for Index {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.pages);
    }
}

static INDEXES: Mutex<Vec<Index>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/indexes", INDEXES, "All indexes.");

static TWICE: Mutex<Vec<String>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/first", TWICE, "Reported twice.");
memreport::reporter!("explicit/second", TWICE, "Reported twice.");

static SERVICE: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The test of the README and the guide, beside the tests below.
#[test]
fn the_heap_is_accounted_for() {
    let since = Baseline::new();
    WORDS.lock().unwrap().extend(["memory".repeat(900), "heap".repeat(900)]);
    since.assert_classified(5.0);
}

#[inline(never)]
fn forgetful_index() -> Index {
    Index { pages: vec![1; 2000], _forgotten: vec![2; 70_001] }
}

#[test]
fn a_forgotten_field_exceeds_the_limits_and_its_line_is_listed() {
    let since = Baseline::new();
    INDEXES.lock().unwrap().push(forgetful_index());
    assert_eq!(since.check(Limits::bytes(80_000)), Ok(()));
    assert_eq!(since.check(Limits::percent(99.0).and_bytes(80_000)), Ok(()));
    let text = since.check(Limits::bytes(70_000).and_percent(1.0)).unwrap_err();
    assert!(text.contains("and at most 70000 bytes and 1 % may be:"), "{text}");
    assert!(text.contains("forgetful_index"), "{text}");
    assert!(text.contains("dmd/tests/baseline.rs:"), "{text}");
    assert!(!text.contains("DMD="), "no variable needs to be set: {text}");
    assert_eq!(listed_bytes(&text), stated_bytes(&text), "{text}");
}

#[cfg(feature = "explain")]
#[test]
fn types_and_suggestions_are_those_of_run() {
    static DARK: Mutex<Vec<u16>> = Mutex::new(Vec::new());
    let since = Baseline::new();
    DARK.lock().unwrap().resize(20_000, 1);
    let text = since.check(Limits::bytes(1000)).unwrap_err();
    assert!(text.contains("bytes in 1 block: [u16]"), "{text}");
    assert!(text.contains("→ no reporter reaches static"), "{text}");
    assert!(text.contains("DARK"), "{text}");
}

/// Returns the unreported bytes of the message's first line.
fn stated_bytes(text: &str) -> u64 {
    let in_parentheses = text.split_once('(').map_or("", |(_, rest)| rest);
    in_parentheses.split(' ').next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// Returns the sum of the bytes of all lists.
fn listed_bytes(text: &str) -> u64 {
    let lists = text.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(" bytes in "));
    lists.map(|(bytes, _)| bytes.parse::<u64>().unwrap_or(0)).sum()
}

#[test]
fn blocks_that_are_freed_or_older_do_not_count() {
    let before = vec![1_u8; 50_000];
    let since = Baseline::new();
    drop(vec![1_u8; 60_000]);
    std::thread::spawn({
        let sent = vec![1_u8; 61_000];
        move || drop(sent)
    })
    .join()
    .unwrap();
    assert_eq!(since.check(Limits::bytes(1000)), Ok(()));
    drop(before);
}

#[test]
fn a_double_report_of_our_own_is_found() {
    let since = Baseline::new();
    assert_eq!(since.check(0.0), Ok(()));
    TWICE.lock().unwrap().push("x".repeat(3000));
    let text = since.check(Limits::bytes(1000)).unwrap_err();
    assert!(text.contains("blocks are reported twice"), "{text}");
    assert!(text.contains("reported by explicit/second"), "{text}");
}

#[test]
fn threads_count_if_they_join_in_or_are_named() {
    let since = Baseline::new().and_threads_named("service");
    let threads = since.threads();
    let joined = std::thread::spawn(move || threads.join_in(|| vec![1_u8; 30_000]));
    let kept = joined.join().unwrap();
    let text = since.check(Limits::bytes(20_000)).unwrap_err();
    assert!((30_000..40_000).contains(&stated_bytes(&text)), "{text}");
    drop(kept);
    // The block was freed by this thread, so it does not count any more.
    assert_eq!(since.check(Limits::bytes(20_000)), Ok(()));

    let (start, started) = std::sync::mpsc::channel();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let service = std::thread::Builder::new().name("service".to_owned());
    let service = service.spawn(move || {
        *SERVICE.lock().unwrap() = vec![1; 40_000];
        start.send(()).unwrap();
        let _ = stopped.recv();
    });
    started.recv().unwrap();
    let text = since.check(Limits::bytes(20_000)).unwrap_err();
    assert!(stated_bytes(&text) >= 40_000, "{text}");
    drop(stop);
    service.unwrap().join().unwrap();
}

#[test]
fn other_tests_that_allocate_panic_and_lock_do_not_disturb() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for locks in [true, false] {
            let stop = &stop;
            scope.spawn(move || {
                let mut dark = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    dark.push(vec![0_u8; 5000]);
                    let _ = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(1)));
                    let locked = locks.then(|| WORDS.lock().unwrap());
                    std::thread::sleep(std::time::Duration::from_micros(300));
                    drop(locked);
                    std::thread::sleep(std::time::Duration::from_micros(300));
                    dark.truncate(100);
                }
            });
        }
        let checks = std::panic::catch_unwind(|| {
            for _ in 0..20 {
                let since = Baseline::new();
                WORDS.lock().unwrap().push("word".repeat(1000));
                assert_eq!(since.check(Limits::bytes(1000).and_percent(50.0)), Ok(()));
            }
        });
        stop.store(true, Ordering::Relaxed);
        checks.unwrap();
    });
}

/// Runs `work` while another thread frees a large part of the heap again and again.
fn beside_a_thread_that_frees<R>(work: impl FnOnce() -> R) -> R {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(std::hint::black_box(Vec::<u8>::with_capacity(16 << 20)));
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn a_failure_neither_waits_for_nor_lists_what_other_tests_free() {
    let since = Baseline::new();
    let dark = std::hint::black_box(vec![1_u8; 9000]);
    let text = beside_a_thread_that_frees(|| since.check(Limits::bytes(8000)).unwrap_err());
    assert!(!text.contains("freed during the collection"), "{text}");
    assert!(!text.ends_with('\n'), "{text:?}");
    drop(dark);
}

#[test]
fn a_panicking_test_ends_its_baseline() {
    let panicked = std::panic::catch_unwind(|| {
        let _since = Baseline::new();
        std::panic::resume_unwind(Box::new(1));
    });
    assert!(panicked.is_err());
    assert_eq!(Baseline::new().check(0.0), Ok(()));
}

#[test]
fn baselines_nest() {
    let outer = Baseline::new();
    let inner = Baseline::new();
    let dark = std::hint::black_box(vec![1_u8; 9000]);
    assert!(inner.check(Limits::bytes(8000)).is_err());
    drop(inner);
    assert!(outer.check(Limits::bytes(8000)).is_err());
    drop(dark);
}

macro_rules! many_tests {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let since = Baseline::new();
            WORDS.lock().unwrap().push("word".repeat(1000));
            since.assert_classified(Limits::percent(40.0).and_bytes(2048));
        }
    )*};
}

mod many {
    use super::{Baseline, Limits, WORDS};

    many_tests!(t00 t01 t02 t03 t04 t05 t06 t07 t08 t09 t10 t11 t12 t13 t14 t15 t16 t17 t18 t19);
    many_tests!(t20 t21 t22 t23 t24 t25 t26 t27 t28 t29 t30 t31 t32 t33 t34 t35 t36 t37 t38 t39);
}

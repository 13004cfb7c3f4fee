//! Checks of observers that are limited to a part of the program.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

use dmd::observe::{Allocation, Observer, Part};

type Failure = Box<dyn std::error::Error>;

/// Sizes that occur nowhere else: of the main thread, of the worker, and of the worker in scopes.
const MAIN: usize = 4321;
const WORKER: usize = 5432;
const OUTER: usize = 6543;
const INNER: usize = 7654;

fn allocate(size: usize) {
    drop(black_box(vec![1_u8; size]));
}

/// Allocates on this thread, and on a worker that begins now, in this order: main, worker, outer,
/// inner.
fn allocate_everywhere() -> Result<(), Failure> {
    allocate(MAIN);
    let worker = thread::Builder::new().name("a worker".into()).spawn(|| {
        allocate(WORKER);
        memreport::scope!("outer");
        allocate(OUTER);
        memreport::scope!("inner");
        allocate(INNER);
    })?;
    worker.join().map_err(|_| "a thread panicked".into())
}

/// Returns which of the sizes above are in the log, and how many other entries.
fn seen(observer: &mut Observer) -> Result<(Vec<usize>, usize), Failure> {
    let log = observer.drain_allocations_log()?;
    assert!(!log.overflowed);
    let sizes: Vec<_> = log.entries.iter().map(Allocation::requested).collect();
    let known = |size: &usize| [MAIN, WORKER, OUTER, INNER].contains(size);
    let others = sizes.iter().filter(|size| !known(size)).count();
    Ok((sizes.into_iter().filter(known).collect(), others))
}

pub(crate) fn run() -> Result<(), Failure> {
    let mut observer = Observer::start()?;
    let all = [MAIN, WORKER, OUTER, INNER];
    allocate_everywhere()?;
    assert_eq!(seen(&mut observer)?.0, all);

    let main = std::process::id();
    let part = Part::default;
    // The scope has no number before it is entered.
    let table: [(Part, &[usize]); 8] = [
        (part().thread("a worker"), &[WORKER, OUTER, INNER]),
        (part().thread_id(main), &[MAIN]),
        (part().thread("a worker").thread_id(main), &all),
        (part().thread("nobody"), &[]),
        (part().scope("outer"), &[OUTER, INNER]),
        (part().scope("inner"), &[INNER]),
        (part().scope("inner").thread_id(main), &[]),
        (part().scope("nothing").scope("inner").thread("a worker"), &[INNER]),
    ];
    for (part, expected) in &table {
        observer.limit_to(part.clone());
        let _ = observer.drain_allocations_log()?;
        allocate_everywhere()?;
        let (found, others) = seen(&mut observer)?;
        assert_eq!(found, *expected, "{part:?}");
        // A thread that begins another one, or begins, allocates outside the scopes.
        let has_threads = expected.contains(&MAIN) || expected.contains(&WORKER);
        assert!(has_threads || others == 0, "{part:?}: {others} others");
        assert_eq!(observer.part(), part);
    }

    // Beside another observer, each sees its own part.
    let mut second = Observer::start()?;
    second.limit_to(part().thread_id(main));
    observer.limit_to(part().scope("inner"));
    allocate_everywhere()?;
    assert_eq!(seen(&mut second)?.0, [MAIN]);
    assert_eq!(seen(&mut observer)?.0, [INNER]);
    drop(second);
    // Of the main thread, which the other one saw.
    let _ = observer.drain_allocations_log()?;

    a_profile_has_what_no_observer_sees(&mut observer)?;

    // What the limit leaves out takes no room in the log.
    observer.set_max_log_length(1)?;
    allocate_everywhere()?;
    let entries = observer.drain_allocations_log()?;
    assert_eq!((entries.lost, entries.entries.len()), (0, 1));
    observer.limit_to(part());
    observer.set_max_log_length(5000)?;
    allocate_everywhere()?;
    assert_eq!(seen(&mut observer)?.0, all);
    renamed(&mut observer)
}

/// Checks that a profile, if one runs, samples all threads while an observer is limited to one that
/// does not exist. The observer's probability is 1, so each block is in the sample.
fn a_profile_has_what_no_observer_sees(observer: &mut Observer) -> Result<(), Failure> {
    let is_profile = std::env::var("DMD").is_ok_and(|words| words.contains("profile"));
    if !is_profile {
        return Ok(());
    }
    let part = observer.part().clone();
    observer.limit_to(Part::default().thread("nobody"));
    let block = black_box(vec![1_u8; MAIN]);
    assert_eq!(dmd::allocation_site(&block[..])?.requested(), MAIN);
    observer.limit_to(part);
    Ok(())
}

/// Checks that a thread is seen under a later name from the next reading of the log on.
fn renamed(observer: &mut Observer) -> Result<(), Failure> {
    let own = Barrier::new(2);
    observer.limit_to(Part::default().thread("later"));
    thread::scope(|scope| -> Result<(), Failure> {
        thread::Builder::new().name("earlier".into()).spawn_scoped(scope, || {
            allocate(WORKER);
            own.wait();
            own.wait();
            rename("later");
            allocate(OUTER);
            own.wait();
            own.wait();
        })?;
        own.wait();
        let before = seen(observer)?.0;
        own.wait();
        own.wait();
        let after = seen(observer)?.0;
        own.wait();
        assert_eq!((before, after), (vec![], vec![OUTER]));
        Ok(())
    })
}

/// Renames this thread, as C programs do.
fn rename(name: &str) {
    std::fs::write("/proc/thread-self/comm", name).expect("a thread renames itself");
}

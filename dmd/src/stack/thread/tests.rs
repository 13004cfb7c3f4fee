//! Tests of the numbers and marks of threads.

use std::thread::Builder;
use std::time::Duration;

use super::*;

/// Runs on a new thread, with its state.
fn on_thread<R: Send + 'static>(name: &str, run: impl FnOnce(&Thread) -> R + Send + 'static) -> R {
    let thread = Builder::new().name(name.into()).spawn(|| Thread::current(run));
    let result = thread.expect("a thread").join().expect("it does not panic");
    result.expect("the thread runs")
}

/// Waits for a result. The kernel may take a moment to remove a thread that was joined.
fn awaited<R>(mut check: impl FnMut() -> Option<R>) -> Option<R> {
    (0..10_000).find_map(|_| {
        let result = check();
        if result.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        result
    })
}

#[test]
fn a_thread_has_a_number_of_its_own() {
    let numbers = |thread: &Thread| [thread.number(), thread.number(), sys::thread_id()];
    let given = REGISTERED_COUNT.load(Relaxed);
    let [first, again, _] = on_thread("first", numbers);
    assert!(first > given, "{first} after {given}");
    let [second, _, second_id] = on_thread("second", numbers);
    assert_eq!(first, again);
    assert!(second > first, "{second} after {first}");
    let known = registered_as(second).expect("it is registered");
    assert_eq!((known.number, known.system_id, known.ended), (second, second_id, 0));
    let numbers: Vec<u32> = registered().map(|thread| thread.number).collect();
    let last = u32::try_from(numbers.len()).expect("they are few");
    assert!(numbers.contains(&first) && numbers.contains(&second));
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
    assert!(registered_as(u32::MAX).is_none());
}

#[test]
fn a_number_passes_on_when_its_thread_has_ended() {
    let ended = on_thread("ended", Thread::number);
    let (own, own_id) = on_thread("worker", move |thread| {
        // While the first numbers are given, none passes on.
        assert_eq!(of_ended_thread(), None);
        let own = thread.number();
        assert_eq!(take(own), None);
        let ended = awaited(|| take(ended));
        let known = ended.and_then(registered_as).expect("its thread has ended");
        assert_eq!((known.system_id, known.ended), (sys::thread_id(), 1));
        let name = known.name();
        assert_eq!(name.as_deref(), Some("worker, or one of 1 ended threads"));
        // No thread has this number yet.
        assert_eq!(take(u32::MAX), None);
        (own, sys::thread_id())
    });
    let gone = |ended| RegisteredThread { number: own, system_id: own_id, handle: 0, ended };
    assert!(awaited(|| gone(0).name().is_none().then_some(())).is_some());
    assert_eq!(gone(1).name().as_deref(), Some("one of 2 ended threads"));
}

#[test]
fn the_trackers_own_threads_are_marked() {
    let number = on_thread("own", |thread| {
        assert!(!thread.is_own() && !is_own(thread.number()));
        mark_own();
        assert!(thread.is_own());
        let number = thread.number();
        mark_own();
        assert_eq!(thread.number(), number);
        number
    });
    assert!(is_own(number));
    assert!(OWN_NUMBERS.iter().any(|own| own.load(Relaxed) == number));
    assert!(!is_own(on_thread("another", Thread::number)));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "writes to a file of Linux")]
fn a_thread_reads_its_name_once_for_each_change_of_limits() {
    on_thread("before", |thread| {
        let number = thread.number();
        let known = || numbers(number);
        let id = u64::from(sys::thread_id());
        assert_eq!(known(), [id, 0]);
        thread.learn_name(1);
        assert_eq!(known(), [id, thread_name_number(b"before")]);
        std::fs::write("/proc/thread-self/comm", "after").expect("a name");
        thread.learn_name(1);
        assert_eq!(known(), [id, thread_name_number(b"before")]);
        thread.learn_name(2);
        assert_eq!(known(), [id, thread_name_number(b"after")]);
    });
}

#[test]
fn a_thread_is_inside_the_tracker_once_and_finds_its_stack_there() {
    on_thread("inside", |thread| {
        for _ in 0..2 {
            let inside = Inside::enter(thread).expect("it is outside");
            assert!(Inside::enter(thread).is_none());
            let bounds = thread.bounds(&inside);
            assert!(bounds.is_some() && bounds == sys::stack_bounds(), "{bounds:?}");
        }
    });
}

#[test]
fn another_number_starts_afresh() {
    on_thread("renumbered", |thread| {
        let old = thread.number();
        let inside = Inside::enter(thread).expect("it is outside");
        let last = inside.last_stack().expect("there is memory");
        thread.site_without_stack.set(CachedSite { attribution: 1, site: 2 });
        last.hashed.set(3);
        thread.count_walk(true);
        assert!(thread.walked.get().is_some());
        thread.renumber(old + 1);
        assert_eq!(thread.number(), old + 1);
        assert_eq!(thread.site_without_stack.get().site, 0);
        assert_eq!(last.hashed.get(), 0);
        assert!(thread.walked.get().is_none());
        thread.renumber(old);
    });
}

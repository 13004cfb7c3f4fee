//! Tests of jobs that wait, and of collections that are left behind.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::event::listeners::on_memory_event;
use crate::report::missed::Missed;
use crate::report::timeout::ReporterId;
use crate::serve::save_folder::Limits;

#[test]
fn occasions_of_one_kind_are_one_job() {
    let pair = UnixStream::pair().expect("a pair");
    let mut work = Work::new(Commands::default(), pair.0);
    let history = Arc::new(History::new(3));
    let timeout = Duration::from_secs(600);
    work.add(Job::own(Task::Keep(Arc::clone(&history)), timeout));
    work.add(Job::for_client(Task::Answer(Request::new("report")), 1, timeout));
    for _ in 0..100 {
        work.add(Job::own(Task::Keep(Arc::clone(&history)), timeout));
    }
    assert_eq!(work.waiting.len(), 2);
}

#[test]
fn a_reporter_is_left_behind_half_way_but_not_in_the_last_attempt() {
    let progress = Arc::new(Progress::default());
    let deadline = Instant::now() + Duration::from_secs(600);
    let attempt = |number| Attempt { id: 1, number, progress: Arc::clone(&progress), deadline };
    assert_eq!(attempt(1).reporter_deadline(), None, "it waits for its turn");
    progress.begin(None);
    let since = progress.since().expect("it has begun");
    for number in 1..MAX_ATTEMPTS {
        let ends = attempt(number).reporter_deadline().expect("others follow");
        assert_eq!(ends - since, (deadline - since) / 2);
    }
    assert_eq!(attempt(MAX_ATTEMPTS).reporter_deadline(), None);
}

#[test]
fn a_job_waits_until_one_of_too_many_abandoned_collections_ends() {
    let pair = UnixStream::pair().expect("a pair");
    let mut work = Work::new(Commands::default(), pair.0);
    let deadline = Instant::now() + Duration::from_secs(600);
    let attempt = |id| Attempt { id, number: 1, progress: Arc::default(), deadline };
    work.abandoned.extend((1..=4).map(attempt));
    work.next = 4;
    let task = Task::Answer(Request::new("nothing"));
    work.add(Job::for_client(task, 1, Duration::from_secs(600)));
    assert!(work.advance().is_empty() && work.current.is_none());
    work.finished().push((3, Ok(Vec::new())));
    assert!(work.advance().is_empty());
    assert!(work.current.is_some() && work.waiting.is_empty());
}

#[test]
fn the_answer_comes_within_twice_the_timeout() {
    let timeout = Duration::from_secs(600);
    let before = Instant::now();
    let job = Job::for_client(Task::Answer(Request::new("report")), 1, timeout);
    let deadline = job.deadline.expect("a client has one");
    assert!(deadline > before + timeout && deadline < Instant::now() + timeout * 2);
}

#[test]
fn an_abandoned_collection_saves_nothing_and_calls_no_handler() {
    let base = std::env::temp_dir().join(format!("memreport-abandoned-{}", std::process::id()));
    let folder = Arc::new(Folder::new(base.clone(), "program", Limits::default()));
    let history = Arc::new(History::new(3));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let handler = on_memory_event(move |event| {
        counted.fetch_add(usize::from(event.reason == "abandoned or not"), Relaxed);
    });
    let pair = UnixStream::pair().expect("a pair");
    let done = Done { finished: Mutex::default(), wake: pair.0 };
    let reason = SaveReason { words: "by a test".to_owned(), event: Some("abandoned or not") };
    for is_abandoned in [true, false] {
        let progress = Progress::default();
        if is_abandoned {
            progress.begin_reporter(ReporterId::Fixed(0), "slow");
            assert!(progress.abandon());
        }
        let deadline = Instant::now() + Duration::from_secs(600);
        let collection = Collection { progress: &progress, deadline, done: &done };
        let tasks = [Task::Save(Arc::clone(&folder), reason.clone()), Task::Keep(history.clone())];
        for task in tasks {
            let outcome = execute(&task, &Commands::default(), &collection);
            assert_eq!(outcome.is_err(), is_abandoned);
        }
        let saved = std::fs::read_dir(&base).map_or(0, Iterator::count);
        let expected = usize::from(!is_abandoned);
        assert_eq!([saved, history.parts().len(), calls.load(Relaxed)], [expected; 3]);
    }
    drop(handler);
    std::fs::remove_dir_all(&base).expect("the folder of this test");
}

#[test]
fn reporters_that_an_abandoned_collection_skips_are_missed() {
    let progress = Progress::default();
    progress.begin_reporter(ReporterId::Fixed(0), "slow");
    assert!(progress.abandon());
    let snapshot = Collector::default().concurrent(&progress);
    let is_missed = |missed: &Missed| missed.reporter == "memreport";
    assert!(snapshot.missed().iter().any(is_missed), "{:?}", snapshot.missed());
}

#[test]
fn an_event_is_kept_when_saves_are_merged_and_counts_when_its_save_begins() {
    let base = std::env::temp_dir().join(format!("memreport-merged-{}", std::process::id()));
    let folder = Arc::new(Folder::new(base.clone(), "program", Limits::default()));
    let pair = UnixStream::pair().expect("a pair");
    let mut work = Work::new(Commands::default(), pair.0);
    for event in [None, Some("threshold"), None] {
        let reason = SaveReason { words: format!("{event:?}"), event };
        work.add(Job::own(Task::Save(Arc::clone(&folder), reason), Duration::from_secs(600)));
    }
    assert_eq!(work.waiting.len(), 1);
    let Task::Save(_, reason) = &work.waiting[0].task else { panic!("a save") };
    assert_eq!((&*reason.words, reason.event), ("Some(\"threshold\")", Some("threshold")));
    assert!(!work.take_begun_event());
    work.advance();
    assert!(work.take_begun_event() && !work.take_begun_event());
    while work.current.is_some() {
        thread::sleep(Duration::from_millis(1));
        work.advance();
    }
    std::fs::remove_dir_all(&base).expect("the folder of this test");
}

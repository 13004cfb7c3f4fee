//! Tests of jobs that wait, and of collections that are left behind.

use super::*;

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
    assert_eq!(attempt(1).patience_ends(), None, "it waits for its turn");
    progress.begin(None);
    let since = progress.since().expect("it has begun");
    for number in 1..MAX_ATTEMPTS {
        let ends = attempt(number).patience_ends().expect("others follow");
        assert_eq!(ends - since, (deadline - since) / 2);
    }
    assert_eq!(attempt(MAX_ATTEMPTS).patience_ends(), None);
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

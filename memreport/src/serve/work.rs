//! Runs jobs that take time one after the other, on threads that can be abandoned.
//!
//! A reporter may be slow, or may wait forever. The client must not wait with it. After the
//! timeout, the collection is abandoned, and another one runs without that reporter.
//!
//! Jobs and collections run in the order of their arrival. Each job with a client has a deadline
//! that counts from its arrival, and an answer by then.

use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::commands::Commands;
use super::history::History;
use super::protocol::{Part, Request};
use super::reply::{Outcome, Piece, outcome};
use super::save_folder::{Folder, SaveReason};
use super::sys;
use crate::allocator::declaration::{is_tracking, mark_own_thread};
use crate::event::callback::panic_message;
use crate::event::cycle::cycle;
use crate::event::on_alloc::as_own;
use crate::process;
use crate::process::minimize::minimize;
use crate::report::timeout::{Progress, RunningReporter, seconds};
use crate::report::turn::Turn;
use crate::snapshot::Snapshot;
use crate::snapshot::collect::Collector;

/// The most abandoned collections at a time. Beyond, no job starts until one of them ends.
const MAX_ABANDONED: usize = 4;

/// The time between two looks at a collection that has used up its time for reporters.
const POLL: Duration = Duration::from_millis(50);

/// The most attempts at a report, each without the reporters that took too long.
const MAX_ATTEMPTS: usize = 3;

/// The outcome of an abandoned collection, which no client receives.
const ABANDONED: &str = "the collection was abandoned";

/// A job's kind and the use of its result.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Answers a client.
    Answer(Request),
    /// Saves a report to a file.
    Save(Arc<Folder>, SaveReason),
    /// Keeps a snapshot in memory.
    Keep(Arc<History>),
}

/// A task, with the clients that wait for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) task: Task,
    pub(super) clients: Vec<u64>,
    pub(super) timeout: Duration,
    /// The time at which the clients give up. Without clients, it is set when the job begins.
    deadline: Option<Instant>,
    /// The number of attempts that have begun.
    attempts: usize,
}

impl Job {
    /// Creates a job for a client. The first attempt has `timeout`; the answer comes within twice
    /// that time.
    pub(super) fn for_client(task: Task, client: u64, timeout: Duration) -> Self {
        let deadline = Some(Instant::now() + whole_time(timeout));
        Job { task, clients: vec![client], timeout, deadline, attempts: 0 }
    }

    /// Creates a job of the server itself.
    pub(super) fn own(task: Task, timeout: Duration) -> Self {
        Job { task, clients: Vec::new(), timeout, deadline: None, attempts: 0 }
    }

    /// Returns whether the job collects reports.
    fn collects(&self) -> bool {
        !matches!(&self.task, Task::Answer(request) if request.command != "report")
    }
}

/// Returns the time for all attempts at a job. A twentieth is for the way of the answer.
fn whole_time(timeout: Duration) -> Duration {
    timeout.saturating_mul(2) / 20 * 19
}

/// One attempt at a job, on a thread of its own.
#[derive(Debug)]
struct Attempt {
    id: u64,
    number: usize,
    progress: Arc<Progress>,
    /// The time at which the attempt is given up, and its job with it.
    deadline: Instant,
}

impl Attempt {
    /// Returns the time from which on a reporter that still runs is left behind; `None` if the
    /// attempt waits for its turn, or is the last one.
    fn reporter_deadline(&self) -> Option<Instant> {
        let since = self.progress.since().filter(|_| self.number < MAX_ATTEMPTS)?;
        Some(since + self.deadline.saturating_duration_since(since) / 2)
    }
}

/// The results of worker threads.
#[derive(Debug)]
struct Done {
    finished: Mutex<Vec<(u64, Outcome)>>,
    wake: UnixStream,
}

/// All jobs, and the threads that work on them.
#[derive(Debug)]
pub(super) struct Work {
    commands: Commands,
    waiting: VecDeque<Job>,
    current: Option<(Job, Attempt)>,
    abandoned: Vec<Attempt>,
    next: u64,
    /// True if a save for a memory event has begun since the last query.
    has_begun_event: bool,
    done: Arc<Done>,
}

impl Work {
    /// Creates an empty queue. Worker threads write a byte to `wake` when they are done.
    pub(super) fn new(commands: Commands, wake: UnixStream) -> Self {
        Work {
            commands,
            waiting: VecDeque::new(),
            current: None,
            abandoned: Vec::new(),
            next: 0,
            has_begun_event: false,
            done: Arc::new(Done { finished: Mutex::default(), wake }),
        }
    }

    /// Adds a job. A job that has not started serves all clients with the same request, and all
    /// occasions to keep or save a report: the queue never has more jobs of the server than kinds.
    pub(super) fn add(&mut self, job: Job) {
        let same = self.waiting.iter_mut().find(|waiting| match (&waiting.task, &job.task) {
            (Task::Answer(waiting), Task::Answer(asked)) => waiting == asked,
            (Task::Save(waiting, _), Task::Save(asked, _)) => Arc::ptr_eq(waiting, asked),
            (Task::Keep(waiting), Task::Keep(asked)) => Arc::ptr_eq(waiting, asked),
            _ => false,
        });
        match same {
            Some(waiting) => {
                waiting.clients.extend(job.clients);
                waiting.timeout = waiting.timeout.max(job.timeout);
                waiting.deadline = waiting.deadline.max(job.deadline);
                if let (Task::Save(_, waiting), Task::Save(_, reason)) =
                    (&mut waiting.task, job.task)
                {
                    waiting.merge(reason);
                }
            }
            None => self.waiting.push_back(job),
        }
    }

    /// Returns the latest time for the next call of [`advance`](Self::advance).
    pub(super) fn deadline(&self) -> Option<Instant> {
        let current = self.current.as_ref().map(|(_, attempt)| {
            let deadline = attempt.reporter_deadline().unwrap_or(attempt.deadline);
            // Past it no reporter runs, but one may begin.
            deadline.max(Instant::now() + POLL).min(attempt.deadline)
        });
        self.waiting.iter().filter_map(|job| job.deadline).chain(current).min()
    }

    /// Starts the jobs that can start. Returns the finished ones: the waiting clients and the
    /// answer.
    pub(super) fn advance(&mut self) -> Vec<(Vec<u64>, Outcome)> {
        let mut answers = Vec::new();
        let finished = std::mem::take(&mut *self.finished());
        for (id, answer) in finished {
            self.abandoned.retain(|attempt| attempt.id != id);
            if let Some((job, _)) = self.current.take_if(|(_, attempt)| attempt.id == id) {
                answers.push((job.clients, answer));
            }
        }
        let now = Instant::now();
        let is_stuck = |(job, attempt): &mut (Job, Attempt)| {
            // A file that takes long to write is finished, and not started again.
            let is_writing = matches!(job.task, Task::Save(..)) && attempt.progress.has_finished();
            job.collects()
                && !is_writing
                && attempt.reporter_deadline().is_some_and(|end| end <= now)
                && attempt.progress.abandon()
        };
        if let Some((job, attempt)) = self.current.take_if(is_stuck) {
            self.abandoned.push(attempt);
            self.waiting.push_front(job);
        } else if let Some((job, attempt)) =
            self.current.take_if(|(_, attempt)| attempt.deadline <= now)
        {
            attempt.progress.abandon();
            self.abandoned.push(attempt);
            answers.push((job.clients, Err(self.timeout_message(job.timeout))));
        }
        let is_late = |job: &Job| job.deadline.is_some_and(|deadline| deadline <= now);
        let (late, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(is_late);
        self.waiting = waiting;
        for job in Vec::from(late) {
            answers.push((job.clients, Err(self.timeout_message(job.timeout))));
        }
        // Beyond the limit, jobs wait for the end of an abandoned collection or for their deadline.
        while self.current.is_none() && self.abandoned.len() < MAX_ABANDONED {
            let Some(job) = self.waiting.pop_front() else { break };
            self.begin(job, &mut answers);
        }
        answers
    }

    /// Returns whether a save for a memory event has begun since the last call. One that cannot
    /// begin, because memory or threads are short, is dropped.
    pub(super) fn take_begun_event(&mut self) -> bool {
        std::mem::take(&mut self.has_begun_event)
    }

    fn finished(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Outcome)>> {
        // Pushing to a list is all that happens under the lock, and cannot panic.
        self.done.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reporters that still run for abandoned collections.
    fn running(&self) -> Vec<RunningReporter> {
        self.abandoned.iter().filter_map(|attempt| attempt.progress.running()).collect()
    }

    fn timeout_message(&self, timeout: Duration) -> String {
        let current = self.current.iter().filter_map(|(_, attempt)| attempt.progress.running());
        let running: Vec<_> = self.running().into_iter().chain(current).collect();
        let running: Vec<_> = running.iter().map(RunningReporter::sentence).collect();
        let who = if running.is_empty() { "the program is at work" } else { &running.join(", ") };
        format!(
            "no answer within {}: {who}; repeat with a longer --timeout, or later",
            seconds(timeout)
        )
    }

    fn begin(&mut self, mut job: Job, answers: &mut Vec<(Vec<u64>, Outcome)>) {
        if !sys::has_spare_memory() {
            return answers.push((job.clients, Err(sys::NO_SPARE_MEMORY.to_owned())));
        }
        job.attempts += 1;
        let progress = Arc::new(Progress::without(self.running()));
        let now = Instant::now();
        let whole = *job.deadline.get_or_insert_with(|| now + whole_time(job.timeout));
        let deadline = if job.collects() { whole } else { whole.min(now + job.timeout) };
        self.next += 1;
        let (number, progress_of_attempt) = (job.attempts, Arc::clone(&progress));
        let attempt = Attempt { id: self.next, number, progress: progress_of_attempt, deadline };
        let (id, done, task) = (attempt.id, Arc::clone(&self.done), job.task.clone());
        let commands = self.commands.clone();
        let work = move || {
            mark_own_thread();
            sys::block_signals();
            let collection = Collection { progress: &progress, deadline, done: &done };
            let outcome = catch_unwind(AssertUnwindSafe(|| execute(&task, &commands, &collection)));
            let answer = outcome
                .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_message(&*panic))));
            as_own(|| {
                done.finished.lock().unwrap_or_else(PoisonError::into_inner).push((id, answer));
            });
            done.wake();
        };
        match thread::Builder::new().name("memreport-work".into()).spawn(work) {
            Ok(_) => {
                self.has_begun_event |=
                    matches!(&job.task, Task::Save(_, reason) if reason.event.is_some());
                self.current = Some((job, attempt));
            }
            Err(error) => answers.push((job.clients, Err(format!("no thread for it: {error}")))),
        }
    }
}

impl Done {
    /// Wakes the serving thread.
    fn wake(&self) {
        // A full pipe has enough bytes to wake it.
        let _ = (&self.wake).write(&[1]);
    }
}

/// The parameters of one collection.
struct Collection<'p> {
    progress: &'p Progress,
    deadline: Instant,
    done: &'p Done,
}

impl Collection<'_> {
    /// Takes a snapshot when it is this collection's turn. If another one takes too long, takes it
    /// beside that one, without DMD's findings.
    fn snapshot(&self, anonymize: bool, moment: String) -> Snapshot {
        process::prepare();
        let now = Instant::now();
        let left = self.deadline.saturating_duration_since(now);
        match Turn::wait_until(now + left / 4) {
            Ok(turn) => self.in_turn(turn, anonymize, moment),
            Err(since) => {
                self.progress.begin(None);
                self.done.wake();
                let mut snapshot = self.collector(anonymize, moment).concurrent(self.progress);
                if is_tracking() {
                    snapshot.notes.push(format!(
                        "another collection has been at work for {}, so DMD's findings are missing",
                        seconds(since)
                    ));
                }
                self.progress.end();
                snapshot
            }
        }
    }

    /// Takes a snapshot with DMD's findings, and waits for its turn nearly up to the deadline.
    fn with_findings(&self, anonymize: bool, moment: String) -> Result<Snapshot, String> {
        process::prepare();
        let left = self.deadline.saturating_duration_since(Instant::now());
        let turn = Turn::wait_until(self.deadline - left / 8).map_err(|since| {
            format!(
                "another collection of the program has been at work for {}; repeat with a longer \
                 --timeout, or later",
                seconds(since)
            )
        })?;
        Ok(self.in_turn(turn, anonymize, moment))
    }

    fn in_turn(&self, turn: Turn, anonymize: bool, moment: String) -> Snapshot {
        self.progress.begin(Some(turn.number()));
        // The serving thread decides from now on when a reporter is left behind.
        self.done.wake();
        let snapshot = self.collector(anonymize, moment).in_turn(turn, self.progress);
        self.progress.end();
        snapshot
    }

    /// Saves a report, and calls the handlers of the event that is the reason. Does neither if the
    /// collection was abandoned: another attempt at the job does both.
    fn save(&self, folder: &Folder, reason: &SaveReason) -> Outcome {
        let save = || {
            let snapshot = self.snapshot(false, as_own(|| reason.words.clone()));
            // It lacks the reporters that come after the slow one.
            if self.progress.is_abandoned() {
                return Err(ABANDONED.to_owned());
            }
            let path = as_own(|| folder.save(&snapshot));
            path.map(|_: PathBuf| Vec::new()).map_err(|error| error.to_string())
        };
        let Some(event) = reason.event else { return save() };
        let mut cycle = cycle(event);
        let outcome = cycle.slice(save);
        if self.progress.is_abandoned() {
            cycle.discard();
        } else {
            // Handlers run on this thread, because they are foreign code.
            cycle.finish();
        }
        outcome
    }

    fn collector(&self, anonymize: bool, moment: String) -> Collector {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // Half of the time that the serving thread grants to the reporters of an attempt.
        let collector = Collector::default().moment(moment).timeout(left / 4);
        if anonymize { collector.anonymize() } else { collector }
    }
}

fn execute(task: &Task, commands: &Commands, collection: &Collection<'_>) -> Outcome {
    match task {
        Task::Answer(request) if request.command == "report" => {
            let moment = request.get("moment").unwrap_or("requested from outside");
            let (anonymize, with_dump) = (request.is_yes("anonymize"), request.is_yes("dump"));
            let snapshot = if with_dump {
                collection.with_findings(anonymize, moment.to_owned())?
            } else {
                collection.snapshot(anonymize, moment.to_owned())
            };
            as_own(|| pieces(&snapshot, with_dump))
        }
        Task::Answer(request) if request.command == "minimize" => {
            let done = minimize();
            let notes = done.notes.iter().map(|note| format!("; {note}")).collect::<String>();
            Ok(vec![text("minimized", format!("{done}{notes}")).into()])
        }
        Task::Answer(request) => match commands.find(&request.command) {
            Some(run) => outcome(run(request)),
            None => {
                Err(format!("unknown command `{}`; the status lists all commands", request.command))
            }
        },
        Task::Save(folder, reason) => collection.save(folder, reason),
        Task::Keep(history) => {
            let snapshot = collection.snapshot(false, "kept by the program".to_owned());
            if collection.progress.is_abandoned() {
                return Err(ABANDONED.to_owned());
            }
            history.keep(&snapshot).map(|()| Vec::new()).map_err(|error| error.to_string())
        }
    }
}

/// Returns a report for the socket: the files that would be saved, gzipped.
fn pieces(snapshot: &Snapshot, with_dump: bool) -> Outcome {
    let failed = |error: std::io::Error| error.to_string();
    let report = Part { name: "report".into(), bytes: snapshot.to_gzip().map_err(failed)? };
    let mut pieces = vec![Piece::from(report)];
    if with_dump {
        let Some(dump) = snapshot.dump_to_gzip() else {
            return Err(
                "there is no dump: DMD does not track in this program at the moment".to_owned()
            );
        };
        pieces.push(Piece { name: "dump".into(), contents: dump.map_err(failed)? });
    }
    Ok(pieces)
}

/// Creates a piece of an answer with readable text.
pub(super) fn text(name: &str, text: String) -> Part {
    Part { name: name.to_owned(), bytes: text.into_bytes() }
}

#[cfg(test)]
mod tests;

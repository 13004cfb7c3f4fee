//! Runs jobs that take time one after the other, on threads that can be abandoned.
//!
//! A reporter may be slow, or may wait forever. The client must not wait with it. After the
//! timeout, the collection is abandoned, and another one runs beside it without that reporter.

use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::commands::{Answer, Commands};
use super::history::History;
use super::protocol::{Part, Request};
use super::save_folder::{Folder, SaveReason};
use super::sys;
use crate::allocator::declaration::is_tracking;
use crate::event::callback::panic_message;
use crate::event::cycle::cycle;
use crate::event::on_alloc::as_own;
use crate::process::minimize::minimize;
use crate::report::timeout::{Progress, RunningReporter, seconds};
use crate::snapshot::Snapshot;
use crate::snapshot::collect::Collector;

/// The most abandoned collections at a time. Beyond, no job starts until one of them ends.
const MAX_ABANDONED: usize = 4;

/// The most attempts at a report, each without the reporters that took too long.
const MAX_ATTEMPTS: usize = 3;

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
}

/// One attempt at a job, on a thread of its own.
#[derive(Debug)]
struct Attempt {
    id: u64,
    since: Instant,
    progress: Arc<Progress>,
    collects: bool,
}

/// The results of worker threads.
#[derive(Debug)]
struct Done {
    finished: Mutex<Vec<(u64, Answer)>>,
    wake: UnixStream,
}

/// All jobs, and the threads that work on them.
#[derive(Debug)]
pub(super) struct Work {
    commands: Commands,
    waiting: VecDeque<Job>,
    current: Option<(Job, Attempt, usize)>,
    abandoned: Vec<Attempt>,
    next: u64,
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
            done: Arc::new(Done { finished: Mutex::default(), wake }),
        }
    }

    /// Adds a job. A job that has not started serves all clients with the same request.
    pub(super) fn add(&mut self, job: Job) {
        let same = self.waiting.iter_mut().find(|waiting| match (&waiting.task, &job.task) {
            (Task::Answer(waiting), Task::Answer(asked)) => waiting == asked,
            (Task::Save(waiting, _), Task::Save(asked, _)) => Arc::ptr_eq(waiting, asked),
            _ => false,
        });
        match same {
            Some(waiting) => {
                waiting.clients.extend(job.clients);
                waiting.timeout = waiting.timeout.max(job.timeout);
            }
            None => self.waiting.push_back(job),
        }
    }

    /// Returns the latest time for the next call of [`advance`](Self::advance).
    pub(super) fn deadline(&self) -> Option<Instant> {
        let (job, attempt, _) = self.current.as_ref()?;
        Some(attempt.since + job.timeout)
    }

    /// Starts the jobs that can start. Returns the finished ones: the waiting clients and the
    /// answer.
    pub(super) fn advance(&mut self) -> Vec<(Vec<u64>, Answer)> {
        let mut answers = Vec::new();
        let finished = std::mem::take(&mut *self.finished());
        for (id, answer) in finished {
            self.abandoned.retain(|attempt| attempt.id != id);
            if let Some((job, ..)) = self.current.take_if(|(_, attempt, _)| attempt.id == id) {
                answers.push((job.clients, answer));
            }
        }
        let overdue =
            |(job, attempt, _): &mut (Job, Attempt, usize)| attempt.since.elapsed() >= job.timeout;
        if let Some((job, attempt, attempts)) = self.current.take_if(overdue) {
            // A file that takes long to write is finished, and not started again.
            let is_writing = matches!(job.task, Task::Save(..)) && attempt.progress.has_finished();
            let is_again = attempt.collects && !is_writing && attempts < MAX_ATTEMPTS;
            self.abandoned.push(attempt);
            if is_again {
                self.begin(job, attempts + 1, &mut answers);
            } else {
                answers.push((job.clients, Err(self.timeout_message(job.timeout))));
            }
        }
        while self.current.is_none() {
            let Some(job) = self.waiting.pop_front() else { break };
            self.begin(job, 1, &mut answers);
        }
        answers
    }

    fn finished(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Answer)>> {
        // Pushing to a list is all that happens under the lock, and cannot panic.
        self.done.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reporters that still run for abandoned collections.
    fn running(&self) -> Vec<RunningReporter> {
        self.abandoned.iter().filter_map(|attempt| attempt.progress.running()).collect()
    }

    fn timeout_message(&self, timeout: Duration) -> String {
        let running: Vec<_> = self.running().iter().map(RunningReporter::sentence).collect();
        let who = if running.is_empty() {
            "the program is at work".to_owned()
        } else {
            running.join(", ")
        };
        format!(
            "no answer within {}: {who}; repeat with a longer --timeout, or later",
            seconds(timeout)
        )
    }

    fn begin(&mut self, job: Job, attempts: usize, answers: &mut Vec<(Vec<u64>, Answer)>) {
        if self.abandoned.len() >= MAX_ABANDONED {
            answers.push((job.clients, Err(self.timeout_message(job.timeout))));
            return;
        }
        let collects = !matches!(&job.task, Task::Answer(request) if request.command != "report");
        let progress = Arc::new(Progress::without(self.running()));
        let concurrent = self
            .abandoned
            .iter()
            .any(|attempt| attempt.collects && !attempt.progress.has_finished());
        self.next += 1;
        let attempt = Attempt {
            id: self.next,
            since: Instant::now(),
            progress: Arc::clone(&progress),
            collects,
        };
        let (id, done, task) = (attempt.id, Arc::clone(&self.done), job.task.clone());
        let commands = self.commands.clone();
        let work = move || {
            sys::block_signals();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                execute(&task, &commands, &Collection { progress: &progress, concurrent })
            }));
            let answer = outcome
                .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_message(&*panic))));
            as_own(|| {
                done.finished.lock().unwrap_or_else(PoisonError::into_inner).push((id, answer));
            });
            // A full pipe has enough bytes to wake the thread.
            let _ = (&done.wake).write(&[1]);
        };
        match thread::Builder::new().name("memreport-work".into()).spawn(work) {
            Ok(_) => self.current = Some((job, attempt, attempts)),
            Err(error) => answers.push((job.clients, Err(format!("no thread for it: {error}")))),
        }
    }
}

/// The parameters of one collection.
struct Collection<'p> {
    progress: &'p Progress,
    concurrent: bool,
}

impl Collection<'_> {
    fn snapshot(&self, anonymize: bool, moment: String) -> Snapshot {
        let mut collector = Collector::default().moment(moment);
        if anonymize {
            collector = collector.anonymize();
        }
        let mut snapshot = if self.concurrent {
            collector.concurrent(self.progress)
        } else {
            collector.with_progress(self.progress)
        };
        if self.concurrent && snapshot.findings.is_none() && is_tracking() {
            snapshot.notes.push(
                "an earlier collection has not ended, so DMD's findings are missing".to_owned(),
            );
        }
        self.progress.end();
        snapshot
    }
}

fn execute(task: &Task, commands: &Commands, collection: &Collection<'_>) -> Answer {
    match task {
        Task::Answer(request) if request.command == "report" => {
            let moment = request.get("moment").unwrap_or("requested from outside");
            let snapshot = collection.snapshot(request.is_yes("anonymize"), moment.to_owned());
            as_own(|| parts(&snapshot, request.is_yes("dump")))
        }
        Task::Answer(request) if request.command == "minimize" => {
            let done = minimize();
            let notes = done.notes.iter().map(|note| format!("; {note}")).collect::<String>();
            Ok(vec![text("minimized", format!("{done}{notes}"))])
        }
        Task::Answer(request) => match commands.find(&request.command) {
            Some(run) => run(request),
            None => Err(format!(
                "nobody knows the command `{}`; ask for the status to see those there are",
                request.command
            )),
        },
        Task::Save(folder, SaveReason { words, event }) => {
            let save = || {
                let snapshot = collection.snapshot(false, as_own(|| words.clone()));
                as_own(|| folder.save(&snapshot))
            };
            let path = match event {
                None => save(),
                Some(reason) => {
                    let mut cycle = cycle(*reason);
                    let path = cycle.slice(save);
                    // Handlers run on this thread, because they are foreign code.
                    cycle.finish();
                    path
                }
            };
            path.map(|_: PathBuf| Vec::new()).map_err(|error| error.to_string())
        }
        Task::Keep(history) => {
            let snapshot = collection.snapshot(false, "kept by the program".to_owned());
            history.keep(&snapshot).map(|()| Vec::new()).map_err(|error| error.to_string())
        }
    }
}

/// Returns a report for the socket: the files that would be saved, gzipped.
fn parts(snapshot: &Snapshot, with_dump: bool) -> Answer {
    let failed = |error: std::io::Error| error.to_string();
    let mut parts =
        vec![Part { name: "report".into(), bytes: snapshot.to_gzip().map_err(failed)? }];
    if with_dump {
        let Some(dump) = snapshot.dump_to_gzip() else {
            let why = snapshot.notes.last().filter(|note| note.contains("DMD")).cloned();
            return Err(why.unwrap_or_else(|| {
                "there is no dump: DMD does not track in this program at the moment".to_owned()
            }));
        };
        parts.push(Part { name: "dump".into(), bytes: dump.map_err(failed)? });
    }
    Ok(parts)
}

/// Creates a piece of an answer with readable text.
pub(super) fn text(name: &str, text: String) -> Part {
    Part { name: name.to_owned(), bytes: text.into_bytes() }
}

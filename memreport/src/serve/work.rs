//! Requests that take time are worked off one after the other, on threads that can be left behind.
//!
//! A reporter may be slow, or may wait for what never comes. Whoever asks must not wait with it: after their patience has
//! passed, the collection is left to itself, and another one beside it asks everybody else.

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
use super::moments::Occasion;
use super::protocol::{Part, Request};
use super::saved::Folder;
use super::sys;
use crate::allocator::declaration::is_tracking;
use crate::event::callback::panic_message;
use crate::event::cycle::cycle;
use crate::event::on_alloc::as_own;
use crate::process::minimize::minimize;
use crate::report::timeout::{AtWork, Progress, seconds};
use crate::snapshot::Snapshot;
use crate::snapshot::collect::Collector;

/// How many collections may be left behind at once; after that, nothing is begun until one of them ends.
const LEFT_BEHIND: usize = 4;

/// How often a report is tried, each time without the reporter that took too long.
const TRIES: usize = 3;

/// What is to be done with the outcome.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// A client is waiting for it.
    Answer(Request),
    /// It goes to a file.
    Save(Arc<Folder>, Occasion),
    /// It is kept with those before it.
    Keep(Arc<History>),
}

/// A task with those who wait for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) task: Task,
    pub(super) clients: Vec<u64>,
    pub(super) patience: Duration,
}

/// One try at a job, on a thread of its own.
#[derive(Debug)]
struct Try {
    id: u64,
    since: Instant,
    progress: Arc<Progress>,
    collects: bool,
}

/// What threads have done.
#[derive(Debug)]
struct Done {
    finished: Mutex<Vec<(u64, Answer)>>,
    wake: UnixStream,
}

/// All jobs, and the threads that work at them.
#[derive(Debug)]
pub(super) struct Work {
    commands: Commands,
    waiting: VecDeque<Job>,
    current: Option<(Job, Try, usize)>,
    left_behind: Vec<Try>,
    next: u64,
    done: Arc<Done>,
}

impl Work {
    /// A byte comes through `wake` whenever a thread has done something.
    pub(super) fn new(commands: Commands, wake: UnixStream) -> Self {
        Work {
            commands,
            waiting: VecDeque::new(),
            current: None,
            left_behind: Vec::new(),
            next: 0,
            done: Arc::new(Done { finished: Mutex::default(), wake }),
        }
    }

    /// Adds a job. One that has not begun yet serves all who ask the same.
    pub(super) fn add(&mut self, job: Job) {
        let same = self.waiting.iter_mut().find(|waiting| match (&waiting.task, &job.task) {
            (Task::Answer(waiting), Task::Answer(asked)) => waiting == asked,
            (Task::Save(waiting, _), Task::Save(asked, _)) => Arc::ptr_eq(waiting, asked),
            _ => false,
        });
        match same {
            Some(waiting) => {
                waiting.clients.extend(job.clients);
                waiting.patience = waiting.patience.max(job.patience);
            }
            None => self.waiting.push_back(job),
        }
    }

    /// When [`go_on`](Self::go_on) should be called at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let (job, attempt, _) = self.current.as_ref()?;
        Some(attempt.since + job.patience)
    }

    /// Begins what can be begun, and hands over what is done: who waits for it, and the answer.
    pub(super) fn go_on(&mut self) -> Vec<(Vec<u64>, Answer)> {
        let mut answers = Vec::new();
        let finished = std::mem::take(&mut *self.finished());
        for (id, answer) in finished {
            self.left_behind.retain(|attempt| attempt.id != id);
            if let Some((job, ..)) = self.current.take_if(|(_, attempt, _)| attempt.id == id) {
                answers.push((job.clients, answer));
            }
        }
        let overdue =
            |(job, attempt, _): &mut (Job, Try, usize)| attempt.since.elapsed() >= job.patience;
        if let Some((job, attempt, tries)) = self.current.take_if(overdue) {
            // A file that takes long to write is written to its end, and not begun again.
            let is_writing = matches!(job.task, Task::Save(..)) && attempt.progress.has_ended();
            let is_again = attempt.collects && !is_writing && tries < TRIES;
            self.left_behind.push(attempt);
            if is_again {
                self.begin(job, tries + 1, &mut answers);
            } else {
                answers.push((job.clients, Err(self.too_long(job.patience))));
            }
        }
        while self.current.is_none() {
            let Some(job) = self.waiting.pop_front() else { break };
            self.begin(job, 1, &mut answers);
        }
        answers
    }

    fn finished(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Answer)>> {
        // A list is pushed to under the lock, and nothing that panics.
        self.done.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is still at work for a collection that was left behind.
    fn at_work(&self) -> Vec<AtWork> {
        self.left_behind.iter().filter_map(|attempt| attempt.progress.at_work()).collect()
    }

    fn too_long(&self, patience: Duration) -> String {
        let at_work: Vec<_> = self.at_work().iter().map(AtWork::sentence).collect();
        let who = if at_work.is_empty() {
            "the program is at work".to_owned()
        } else {
            at_work.join(", ")
        };
        format!(
            "no answer within {}: {who}; ask with more patience, or again later",
            seconds(patience)
        )
    }

    fn begin(&mut self, job: Job, tries: usize, answers: &mut Vec<(Vec<u64>, Answer)>) {
        if self.left_behind.len() >= LEFT_BEHIND {
            answers.push((job.clients, Err(self.too_long(job.patience))));
            return;
        }
        let collects = !matches!(&job.task, Task::Answer(request) if request.command != "report");
        let progress = Arc::new(Progress::without(self.at_work()));
        let beside = self
            .left_behind
            .iter()
            .any(|attempt| attempt.collects && !attempt.progress.has_ended());
        self.next += 1;
        let attempt =
            Try { id: self.next, since: Instant::now(), progress: Arc::clone(&progress), collects };
        let (id, done, task) = (attempt.id, Arc::clone(&self.done), job.task.clone());
        let commands = self.commands.clone();
        let work = move || {
            sys::take_no_signals();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                carry_out(&task, &commands, &Collection { progress: &progress, beside })
            }));
            let answer = outcome
                .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_message(&*panic))));
            as_own(|| {
                done.finished.lock().unwrap_or_else(PoisonError::into_inner).push((id, answer));
            });
            // A full pipe has bytes enough to wake.
            let _ = (&done.wake).write(&[1]);
        };
        match thread::Builder::new().name("memreport-work".into()).spawn(work) {
            Ok(_) => self.current = Some((job, attempt, tries)),
            Err(error) => answers.push((job.clients, Err(format!("no thread for it: {error}")))),
        }
    }
}

/// How reports are collected this time.
struct Collection<'p> {
    progress: &'p Progress,
    beside: bool,
}

impl Collection<'_> {
    fn snapshot(&self, anonymize: bool, moment: String) -> Snapshot {
        let mut collector = Collector::default().moment(moment);
        if anonymize {
            collector = collector.anonymize();
        }
        let mut snapshot = if self.beside {
            collector.beside(self.progress)
        } else {
            collector.watched(self.progress)
        };
        if self.beside && snapshot.findings.is_none() && is_tracking() {
            snapshot.notes.push(
                "an earlier collection has not ended, so DMD's findings are missing".to_owned(),
            );
        }
        self.progress.end();
        snapshot
    }
}

fn carry_out(task: &Task, commands: &Commands, collection: &Collection<'_>) -> Answer {
    match task {
        Task::Answer(request) if request.command == "report" => {
            let moment = request.get("moment").unwrap_or("asked for from outside");
            let snapshot = collection.snapshot(request.says("anonymize"), moment.to_owned());
            as_own(|| parts(&snapshot, request.says("dump")))
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
        Task::Save(folder, Occasion { words, event }) => {
            let save = || {
                let snapshot = collection.snapshot(false, as_own(|| words.clone()));
                as_own(|| folder.save(&snapshot))
            };
            let path = match event {
                None => save(),
                Some(reason) => {
                    let mut cycle = cycle(*reason);
                    let path = cycle.slice(save);
                    // Told here, where code of others may run.
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

/// A report as it goes over the socket: the files that would be saved, gzipped.
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

/// A piece that people can read.
pub(super) fn text(name: &str, text: String) -> Part {
    Part { name: name.to_owned(), bytes: text.into_bytes() }
}

//! Which reporter is at work, for whoever will not wait for it without end.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Stands for one reporter of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReporterId {
    /// Gathered by the linker: its place in the order of names.
    Fixed(usize),
    /// Registered while the program ran.
    Registered(u64),
}

/// A reporter that has begun and not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningReporter {
    id: ReporterId,
    name: &'static str,
    since: Instant,
}

impl RunningReporter {
    /// What is said of it.
    pub(crate) fn sentence(&self) -> String {
        format!("the reporter {} has been at work for {}", self.name, seconds(self.since.elapsed()))
    }
}

/// How far a collection is. The collecting thread writes it; another one looks.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    current: Mutex<Option<RunningReporter>>,
    /// Reporters that are still at work for an earlier collection, and are not asked again.
    skipped: Vec<RunningReporter>,
    has_finished: AtomicBool,
}

impl Progress {
    /// Of a collection that does not ask these.
    pub(crate) fn without(skipped: Vec<RunningReporter>) -> Self {
        Progress { skipped, ..Progress::default() }
    }

    /// Why this reporter is not asked, if it is not.
    pub(crate) fn skipped_reporter(&self, id: ReporterId) -> Option<&RunningReporter> {
        self.skipped.iter().find(|running| running.id == id)
    }

    /// The reporter begins.
    pub(crate) fn begin_reporter(&self, id: ReporterId, name: &'static str) {
        *self.current() = Some(RunningReporter { id, name, since: Instant::now() });
    }

    /// Whichever had begun has ended.
    pub(crate) fn end_reporter(&self) {
        *self.current() = None;
    }

    /// Who is at work now.
    pub(crate) fn running(&self) -> Option<RunningReporter> {
        *self.current()
    }

    /// All reporters were heard: what is left to do waits for none.
    pub(crate) fn end(&self) {
        // Relaxed, here and below: what the collection has found is handed on otherwise.
        self.has_finished.store(true, Relaxed);
    }

    /// Whether the collection has ended.
    pub(crate) fn has_finished(&self) -> bool {
        self.has_finished.load(Relaxed)
    }

    fn current(&self) -> MutexGuard<'_, Option<RunningReporter>> {
        // A word is written under the lock, and nothing that panics.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time as people read it: `0.3 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

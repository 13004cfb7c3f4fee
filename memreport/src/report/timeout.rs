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
pub(crate) struct AtWork {
    id: ReporterId,
    name: &'static str,
    since: Instant,
}

impl AtWork {
    /// What is said of it.
    pub(crate) fn sentence(&self) -> String {
        format!("the reporter {} has been at work for {}", self.name, seconds(self.since.elapsed()))
    }
}

/// How far a collection is. The collecting thread writes it; another one looks.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    current: Mutex<Option<AtWork>>,
    /// Reporters that are still at work for an earlier collection, and are not asked again.
    passed_over: Vec<AtWork>,
    has_ended: AtomicBool,
}

impl Progress {
    /// Of a collection that does not ask these.
    pub(crate) fn without(passed_over: Vec<AtWork>) -> Self {
        Progress { passed_over, ..Progress::default() }
    }

    /// Why this reporter is not asked, if it is not.
    pub(crate) fn passes_over(&self, id: ReporterId) -> Option<&AtWork> {
        self.passed_over.iter().find(|at_work| at_work.id == id)
    }

    /// The reporter begins.
    pub(crate) fn begins(&self, id: ReporterId, name: &'static str) {
        *self.current() = Some(AtWork { id, name, since: Instant::now() });
    }

    /// Whichever had begun has ended.
    pub(crate) fn ends(&self) {
        *self.current() = None;
    }

    /// Who is at work now.
    pub(crate) fn at_work(&self) -> Option<AtWork> {
        *self.current()
    }

    /// All reporters were heard: what is left to do waits for none.
    pub(crate) fn end(&self) {
        // Relaxed, here and below: what the collection has found is handed on otherwise.
        self.has_ended.store(true, Relaxed);
    }

    /// Whether the collection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }

    fn current(&self) -> MutexGuard<'_, Option<AtWork>> {
        // A word is written under the lock, and nothing that panics.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time as people read it: `0.3 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

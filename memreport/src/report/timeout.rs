//! Tracks which reporter of a collection is running, so that a timeout can skip it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The identity of a reporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReporterId {
    /// Registered at link time: its index in the order of names.
    Fixed(usize),
    /// Registered at run time.
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
    /// Describes the reporter for a message.
    pub(crate) fn sentence(&self) -> String {
        format!("the reporter {} has been at work for {}", self.name, seconds(self.since.elapsed()))
    }
}

/// The progress of a collection. The collecting thread writes it, and another one reads it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    current: Mutex<Option<RunningReporter>>,
    /// Reporters that still run for an earlier collection, and are skipped.
    skipped: Vec<RunningReporter>,
    has_finished: AtomicBool,
}

impl Progress {
    /// Creates the progress of a collection that skips these reporters.
    pub(crate) fn without(skipped: Vec<RunningReporter>) -> Self {
        Progress { skipped, ..Progress::default() }
    }

    /// Returns the earlier run of this reporter, if it must be skipped.
    pub(crate) fn skipped_reporter(&self, id: ReporterId) -> Option<&RunningReporter> {
        self.skipped.iter().find(|running| running.id == id)
    }

    /// Marks this reporter as running.
    pub(crate) fn begin_reporter(&self, id: ReporterId, name: &'static str) {
        *self.current() = Some(RunningReporter { id, name, since: Instant::now() });
    }

    /// Marks the running reporter as ended.
    pub(crate) fn end_reporter(&self) {
        *self.current() = None;
    }

    /// Returns the reporter that is running.
    pub(crate) fn running(&self) -> Option<RunningReporter> {
        *self.current()
    }

    /// Marks all reporters as ended. The rest of the collection waits for none.
    pub(crate) fn end(&self) {
        // Relaxed, here and below: the result of the collection is published by other means.
        self.has_finished.store(true, Relaxed);
    }

    /// Returns whether all reporters have ended.
    pub(crate) fn has_finished(&self) -> bool {
        self.has_finished.load(Relaxed)
    }

    fn current(&self) -> MutexGuard<'_, Option<RunningReporter>> {
        // Writing one value is all that happens under the lock, and cannot panic.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats a time for people: `0.3 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

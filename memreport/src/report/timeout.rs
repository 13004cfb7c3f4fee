//! Tracks which reporter of a collection is running, so that a timeout can skip it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::turn::{self, TurnNumber};

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
    state: Mutex<State>,
    /// Reporters that still run for an earlier collection, and are skipped.
    skipped: Vec<RunningReporter>,
    has_finished: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The start of the collection, after it has waited for its turn.
    since: Option<Instant>,
    turn: Option<TurnNumber>,
    running: Option<RunningReporter>,
    is_abandoned: bool,
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

    /// Marks the collection as begun, in this turn, or beside another one without a turn.
    pub(crate) fn begin(&self, turn: Option<TurnNumber>) {
        let mut state = self.state();
        (state.since, state.turn) = (Some(Instant::now()), turn);
    }

    /// Returns the start of the collection, if it has begun.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.state().since
    }

    /// Marks this reporter as running.
    pub(crate) fn begin_reporter(&self, id: ReporterId, name: &'static str) {
        self.state().running = Some(RunningReporter { id, name, since: Instant::now() });
    }

    /// Marks the running reporter as ended.
    pub(crate) fn end_reporter(&self) {
        self.state().running = None;
    }

    /// Returns the reporter that is running.
    pub(crate) fn running(&self) -> Option<RunningReporter> {
        self.state().running
    }

    /// Abandons the collection if one of its reporters is running, and ends its turn. Returns
    /// whether that was so.
    ///
    /// Outside reporters the collection works on its own, and others would find half of its work.
    pub(crate) fn abandon(&self) -> bool {
        let mut state = self.state();
        if state.running.is_none() {
            return false;
        }
        state.is_abandoned = true;
        if let Some(turn) = state.turn {
            turn::revoke(turn);
        }
        true
    }

    /// Returns whether the collection is abandoned: nobody waits for its result, and it must not
    /// touch what collections share.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.state().is_abandoned
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

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats a time for people: `0.3 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_is_abandoned_while_a_reporter_runs_alone() {
        let progress = Progress::default();
        assert!(progress.since().is_none());
        progress.begin(None);
        assert!(progress.since().is_some() && progress.running().is_none());
        assert!(!progress.abandon() && !progress.is_abandoned());

        progress.begin_reporter(ReporterId::Fixed(3), "cache");
        let running = progress.running().expect("it has begun");
        let sentence = running.sentence();
        assert!(sentence.starts_with("the reporter cache has been at work for "), "{sentence}");
        progress.end_reporter();
        assert!(progress.running().is_none());

        progress.begin_reporter(ReporterId::Registered(3), "pool");
        assert!(progress.abandon() && progress.is_abandoned());
        assert!(!progress.has_finished());
        progress.end();
        assert!(progress.has_finished());

        // The next collection skips it.
        let next = Progress::without(vec![running]);
        let skips = |id| next.skipped_reporter(id).is_some();
        assert!(skips(ReporterId::Fixed(3)));
        assert!(!skips(ReporterId::Fixed(4)) && !skips(ReporterId::Registered(3)));
    }

    #[test]
    fn times_have_one_digit() {
        let table = [(0, "0.0 s"), (949, "0.9 s"), (951, "1.0 s"), (61_000, "61.0 s")];
        for (millis, expected) in table {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
    }
}

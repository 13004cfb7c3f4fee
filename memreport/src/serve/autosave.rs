//! Decides when a program saves a report by itself: at a signal, near a limit, and at intervals.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::history::History;
use super::limits::KernelFiles;
use super::save_folder::{Folder, SaveReason};
use super::work::Task;
use crate::process::resident;

/// A condition of scarce or growing memory at which a report is saved.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Threshold {
    /// The used percentage of the control group's memory limit, or of the machine's memory if it
    /// has none.
    PercentOfLimit(u8),
    /// Growth of resident memory since the last report, in bytes.
    ResidentStep(u64),
    /// The percentage of the last ten seconds in which some task waited for memory: Linux's
    /// `memory.pressure`.
    Pressure(f64),
}

/// The interval between checks of the thresholds.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The occasions at which reports are saved and kept.
#[derive(Debug, Default)]
pub(super) struct Autosave {
    thresholds: Vec<Threshold>,
    cooldown: Duration,
    folder: Option<Arc<Folder>>,
    signal: Option<File>,
    pub(super) history: Option<(Duration, Arc<History>)>,
    pub(super) periodic: Option<(Duration, Arc<Folder>)>,
    kernel: KernelFiles,
    next_check: Option<Instant>,
    next_kept: Option<Instant>,
    next_saved: Option<Instant>,
    quiet_until: Option<Instant>,
    /// Resident bytes at the last report, for [`Threshold::ResidentStep`].
    last_resident: Option<u64>,
}

impl Autosave {
    /// Creates the thresholds, with a folder, and a time without reports after each.
    pub(super) fn new(thresholds: Vec<Threshold>, cooldown: Duration, folder: Folder) -> Self {
        Autosave { thresholds, cooldown, folder: Some(Arc::new(folder)), ..Autosave::default() }
    }

    /// Sets the pipe that the signal handler writes to.
    pub(super) fn set_signal_pipe(&mut self, end: File) {
        self.signal = Some(end);
    }

    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.signal.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Returns the latest time for the next call of [`due_tasks`](Self::due_tasks).
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.next_check, self.next_kept, self.next_saved].into_iter().flatten().min()
    }

    /// Describes the reports saved so far, one sentence for each folder.
    pub(super) fn results(&self) -> Vec<String> {
        let periodic = self.periodic.iter().map(|(_, folder)| folder);
        self.folder.iter().chain(periodic).filter_map(|folder| folder.results()).collect()
    }

    /// Reads the signal pipe and returns the task to save a report.
    pub(super) fn signal(&mut self) -> Option<Task> {
        let mut bytes = [0; 64];
        // Several signals at once are one request.
        let _ = self.signal.as_mut()?.read(&mut bytes);
        let reason = SaveReason { words: "at a signal".to_owned(), event: None };
        Some(Task::Save(Arc::clone(self.folder.as_ref()?), reason))
    }

    /// Returns the tasks that are due.
    pub(super) fn due_tasks(&mut self, now: Instant) -> Vec<Task> {
        let mut tasks = Vec::new();
        if let Some((every, history)) = &self.history {
            if self.next_kept.is_none_or(|next| next <= now) {
                self.next_kept = Some(after(now, *every));
                tasks.push(Task::Keep(Arc::clone(history)));
            }
        }
        if let Some((every, folder)) = &self.periodic {
            if self.next_saved.is_none_or(|next| next <= now) {
                let words =
                    if self.next_saved.is_none() { "at the start" } else { "at an interval" };
                let reason = SaveReason { words: words.to_owned(), event: None };
                self.next_saved = Some(after(now, *every));
                // If saving takes longer than the interval, the missed ones are skipped.
                if !folder.is_busy() {
                    tasks.push(Task::Save(Arc::clone(folder), reason));
                }
            }
        }
        if !self.thresholds.is_empty() && self.next_check.is_none_or(|next| next <= now) {
            self.next_check = Some(now + CHECK_INTERVAL);
            tasks.extend(self.check_thresholds(now));
        }
        tasks
    }

    /// Begins the time without reports by threshold, when such a report has begun.
    pub(super) fn begin_cooldown(&mut self, now: Instant) {
        self.quiet_until = Some(after(now, self.cooldown));
        self.last_resident = resident().or(self.last_resident);
    }

    /// Returns the task of an exceeded threshold. Until it has begun, each check returns it again.
    fn check_thresholds(&mut self, now: Instant) -> Option<Task> {
        let resident = resident()?;
        let last = *self.last_resident.get_or_insert(resident);
        if self.quiet_until.is_some_and(|until| until > now) {
            return None;
        }
        let (words, event) = self.thresholds.iter().find_map(|threshold| {
            let event = match threshold {
                Threshold::Pressure(_) => "memory-pressure",
                Threshold::PercentOfLimit(_) | Threshold::ResidentStep(_) => "threshold",
            };
            Some((self.passed(threshold, last)?, event))
        })?;
        let reason = SaveReason { words, event: Some(event) };
        Some(Task::Save(Arc::clone(self.folder.as_ref()?), reason))
    }

    /// Describes the excess of this threshold, if it is exceeded.
    fn passed(&self, threshold: &Threshold, last: u64) -> Option<String> {
        match *threshold {
            Threshold::PercentOfLimit(percent) => {
                let found = self.kernel.memory()?;
                (found.percent() >= u64::from(percent)).then(|| {
                    format!(
                        "{} of {} bytes of memory used ({}%)",
                        found.used,
                        found.limit,
                        found.percent()
                    )
                })
            }
            Threshold::ResidentStep(step) => {
                let grown = resident()?.checked_sub(last)?;
                (grown >= step).then(|| format!("resident memory grew by {grown} bytes"))
            }
            Threshold::Pressure(percent) => {
                let found = self.kernel.pressure()?;
                (found >= percent).then(|| {
                    format!("tasks waited for memory for {found:.1}% of the last ten seconds")
                })
            }
        }
    }
}

/// Returns the moment after an interval, or after a year if it cannot be represented.
fn after(now: Instant, interval: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);
    now.checked_add(interval).unwrap_or_else(|| now + YEAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_interval_is_in_the_future() {
        let now = Instant::now();
        assert!(after(now, Duration::MAX) > now);
        assert_eq!(after(now, Duration::from_secs(7)), now + Duration::from_secs(7));
    }
}

//! When a program saves a report by itself: at a signal, near a limit, and at intervals.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::history::History;
use super::limits::KernelFiles;
use super::save_folder::Folder;
use super::work::Task;
use crate::process::resident;

/// When memory is so short, or has grown so much, that a report should be saved.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Threshold {
    /// So many percent of what may be used are used: of the control group's limit, or of the machine's memory where it has
    /// none.
    PercentOfLimit(u8),
    /// Resident memory has grown by so many bytes since the last report.
    ResidentStep(u64),
    /// For so many percent of the last ten seconds some task had to wait for memory: Linux' `memory.pressure`.
    Pressure(f64),
}

/// Why a report is saved.
#[derive(Clone, Debug)]
pub(super) struct SaveReason {
    pub(super) words: String,
    /// What those who listen for events of memory are told.
    pub(super) event: Option<&'static str>,
}

/// How often thresholds are looked at.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What a program has asked for.
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
    /// Resident memory at the last report, for steps.
    last_resident: Option<u64>,
}

impl Autosave {
    /// When one of these thresholds is passed, a report is saved, and then none for a while.
    pub(super) fn new(thresholds: Vec<Threshold>, cooldown: Duration, folder: Folder) -> Self {
        Autosave { thresholds, cooldown, folder: Some(Arc::new(folder)), ..Autosave::default() }
    }

    /// What a signal comes through.
    pub(super) fn set_signal_pipe(&mut self, end: OwnedFd) {
        self.signal = Some(File::from(end));
    }

    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.signal.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// When [`due_tasks`](Self::due_tasks) should be asked at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.next_check, self.next_kept, self.next_saved].into_iter().flatten().min()
    }

    /// What became of the reports that were saved.
    pub(super) fn said(&self) -> Vec<String> {
        let periodic = self.periodic.iter().map(|(_, folder)| folder);
        self.folder.iter().chain(periodic).filter_map(|folder| folder.said()).collect()
    }

    /// A signal came.
    pub(super) fn signal(&mut self) -> Option<Task> {
        let mut bytes = [0; 64];
        // Many signals at once are one wish.
        let _ = self.signal.as_mut()?.read(&mut bytes);
        let reason = SaveReason { words: "at a signal".to_owned(), event: None };
        Some(Task::Save(Arc::clone(self.folder.as_ref()?), reason))
    }

    /// What is to be done now.
    pub(super) fn due_tasks(&mut self, now: Instant) -> Vec<Task> {
        let mut tasks = Vec::new();
        if let Some((every, history)) = &self.history {
            if self.next_kept.is_none_or(|next| next <= now) {
                self.next_kept = Some(now + *every);
                tasks.push(Task::Keep(Arc::clone(history)));
            }
        }
        if let Some((every, folder)) = &self.periodic {
            if self.next_saved.is_none_or(|next| next <= now) {
                let words =
                    if self.next_saved.is_none() { "at the start" } else { "at an interval" };
                let reason = SaveReason { words: words.to_owned(), event: None };
                self.next_saved = Some(now + *every);
                // One that takes longer than the interval is not followed by those that it has put off.
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

    fn check_thresholds(&mut self, now: Instant) -> Option<Task> {
        let resident = resident();
        let last = *self.last_resident.get_or_insert(resident?);
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
        self.quiet_until = Some(now + self.cooldown);
        self.last_resident = resident;
        let reason = SaveReason { words, event: Some(event) };
        Some(Task::Save(Arc::clone(self.folder.as_ref()?), reason))
    }

    /// Why a report is due, if this threshold is passed.
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

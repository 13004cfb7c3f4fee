//! Holds the outcome of a run: the snapshots that the program left.

use super::folder::Folder;
use super::peaks::Peaks;
use crate::command::launch::tracking::Tracking;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// The outcome of a run.
#[derive(Debug)]
pub struct Ran {
    /// The exit status of the program.
    pub status: ExitStatus,
    /// The way in which it was tracked. The preloaded library is there until stacks are shown.
    pub(in crate::command::launch) tracking: Tracking,
    /// The snapshots. The last one before the exit comes last.
    pub snapshots: Vec<SavedSnapshot>,
    /// Notes for people.
    pub notes: Vec<String>,
    /// The exact peaks of its processes, if they were requested.
    pub(super) peaks: Peaks,
    /// The folder of the files; dropping it removes a temporary one.
    pub(super) folder: Folder,
}

/// A snapshot that a program left in the folder.
#[derive(Clone, Debug)]
pub struct SavedSnapshot {
    /// The process.
    pub pid: u32,
    /// The memory report.
    pub report: PathBuf,
    /// DMD's dump, beside it.
    pub dump: PathBuf,
    /// The reason of the snapshot, in the program's words.
    pub moment: String,
    /// The time since the program's start.
    pub after: Duration,
}

impl Ran {
    /// Returns the snapshot to show of each process: the last before its exit, or else the one at
    /// exit.
    #[must_use]
    pub fn last(&self) -> Vec<&SavedSnapshot> {
        let mut last: Vec<&SavedSnapshot> = Vec::new();
        for snapshot in &self.snapshots {
            match last.iter_mut().find(|shown| shown.pid == snapshot.pid) {
                None => last.push(snapshot),
                Some(_) if snapshot.is_at_exit() => {}
                Some(shown) => *shown = snapshot,
            }
        }
        last
    }

    /// Returns the number of snapshots of this process.
    #[must_use]
    pub fn count(&self, pid: u32) -> usize {
        self.snapshots.iter().filter(|snapshot| snapshot.pid == pid).count()
    }

    /// Returns the folder of the files.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

impl SavedSnapshot {
    /// Returns whether it was taken because the heap had grown.
    #[must_use]
    pub fn is_near_peak(&self) -> bool {
        self.moment.starts_with(dmd::run::NEAR_PEAK)
    }

    /// Returns whether it was taken at exit, after locals were dropped.
    #[must_use]
    pub fn is_at_exit(&self) -> bool {
        self.moment == dmd::run::AT_EXIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_near_the_peak_at_exit_or_neither() {
        let at = |moment: &str| {
            let saved = SavedSnapshot {
                pid: 1,
                report: PathBuf::new(),
                dump: PathBuf::new(),
                moment: moment.to_owned(),
                after: Duration::ZERO,
            };
            (saved.is_near_peak(), saved.is_at_exit())
        };
        assert_eq!(at(&format!("{}, with 5 bytes allocated", dmd::run::NEAR_PEAK)), (true, false));
        assert_eq!(at(dmd::run::NEAR_PEAK), (true, false));
        assert_eq!(at(dmd::run::AT_EXIT), (false, true));
        assert_eq!(at("at the signal"), (false, false));
    }
}

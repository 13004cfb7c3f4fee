//! Holds the outcome of a run: the snapshots that the program left.

use super::folder::Folder;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    /// How the program ended.
    pub status: ExitStatus,
    /// What was seen of it; the last snapshot before its exit comes last.
    pub snapshots: Vec<SavedSnapshot>,
    /// What a person should know besides.
    pub notes: Vec<String>,
    /// The folder that holds the files, for as long as this lives.
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
    /// At which moment it was taken, as the program says.
    pub moment: String,
    /// How long after the program's start.
    pub after: Duration,
}

impl Ran {
    /// The snapshot to show for each process: the last before its exit, or else that at exit.
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

    /// How many snapshots there are of this process.
    #[must_use]
    pub fn count(&self, pid: u32) -> usize {
        self.snapshots.iter().filter(|snapshot| snapshot.pid == pid).count()
    }

    /// Where the files are.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

impl SavedSnapshot {
    /// Whether it shows the state at exit, when locals are gone.
    #[must_use]
    pub fn is_at_exit(&self) -> bool {
        self.moment == dmd::run::AT_EXIT
    }
}

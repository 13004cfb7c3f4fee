//! Saves reports into a folder and keeps the newest, each complete, in names that sort by time.
//!
//! `indexer-20261121-230105-123-4711.json.gz` was saved by process 4711 of the program `indexer` at
//! that time, in UTC. DMD's dump lies beside it. Files of earlier processes of the program count as
//! well, so that a program that restarts again and again does not fill the disk.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use crate::snapshot::Snapshot;
use crate::snapshot::files::{Incomplete, incomplete};
use crate::snapshot::stamp::{LENGTH, is_stamp, stamp};

/// The reason for saving a report.
#[derive(Clone, Debug)]
pub(super) struct SaveReason {
    pub(super) words: String,
    /// The reason of the memory event, if handlers are called.
    pub(super) event: Option<&'static str>,
}

impl SaveReason {
    /// Adds a reason to one that waits. One of them counts: the first with a memory event.
    pub(super) fn merge(&mut self, other: SaveReason) {
        if self.event.is_none() && other.event.is_some() {
            *self = other;
        }
    }
}

/// Limits of the saved files.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most reports. A dump beside a report does not count.
    pub files: usize,
    /// The most bytes of all files together. The newest report is kept at any size.
    pub bytes: u64,
    /// The most entries in a report. The others are added up.
    pub reports: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { files: 5, bytes: 1 << 30, reports: 10_000 }
    }
}

/// A folder of saved reports.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The start of all file names.
    prefix: String,
    limits: Limits,
    /// The time of the last report, locked while one is saved. Names stay distinct even if the
    /// clock is set back.
    last: Mutex<SystemTime>,
    outcome: Mutex<Outcome>,
}

#[derive(Debug, Default)]
struct Outcome {
    saved: u64,
    failed: Option<String>,
}

/// A saved report and its dump.
struct Kept {
    name: String,
    pid: u32,
    bytes: u64,
}

impl Folder {
    /// Creates the folder's description for a program with this name.
    #[must_use]
    pub fn new(path: PathBuf, program: &str, limits: Limits) -> Self {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let program: String =
            program.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
        let limits = Limits { files: limits.files.max(1), ..limits };
        let (last, outcome) = (Mutex::new(SystemTime::UNIX_EPOCH), Mutex::default());
        Folder { path, prefix: program + "-", limits, last, outcome }
    }

    /// Saves a report, and removes the oldest ones beyond the limits. Returns the path of the
    /// report.
    ///
    /// # Errors
    ///
    /// Returns errors of creating the folder and the files. Earlier reports are still there.
    pub fn save(&self, snapshot: &Snapshot) -> io::Result<PathBuf> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let time = SystemTime::now().max(*last + Duration::from_millis(1));
        *last = time;
        let name = format!("{}{}-{}.json.gz", self.prefix, stamp(time), std::process::id());
        let path = self.path.join(name);
        let result = self.save_as(snapshot, &path);
        match &result {
            Ok(()) => {
                self.remove_unfinished();
                self.remove_oldest();
            }
            // A dump without its report is useless and takes space.
            Err(_) => _ = fs::remove_file(beside(&path)),
        }
        let mut outcome = self.outcome();
        outcome.saved += u64::from(result.is_ok());
        outcome.failed = result.as_ref().err().map(ToString::to_string);
        result.map(|()| path)
    }

    /// Returns whether a report is being saved at this moment.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.last.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Describes the results so far in a sentence.
    pub(super) fn results(&self) -> Option<String> {
        let outcome = self.outcome();
        let (count, path) = (outcome.saved, self.path.display());
        let files = if count == 1 { "1 report" } else { &format!("{count} reports") };
        match &outcome.failed {
            None if count == 0 => None,
            None => Some(format!("{files} saved in {path}")),
            Some(error) => Some(format!("{files} saved in {path}; the last one was not: {error}")),
        }
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        // Writing two values is all that happens under the lock, and cannot panic.
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save_as(&self, snapshot: &Snapshot, path: &Path) -> io::Result<()> {
        fs::create_dir_all(&self.path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })?;
        snapshot.save_at_most(self.limits.reports, path)
    }

    /// Removes incomplete files of earlier processes that were killed.
    fn remove_unfinished(&self) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(Incomplete { pid, name }) = name.to_str().and_then(incomplete) else {
                continue;
            };
            if has_ended(pid) && name.starts_with(&self.prefix) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes the oldest reports. A file that cannot be removed is gone, or another user's: no
    /// error.
    fn remove_oldest(&self) {
        let mut kept = self.kept();
        kept.sort_by(|one, other| one.name.cmp(&other.name));
        let mut bytes: u64 = kept.iter().map(|kept| kept.bytes).sum();
        let mut count = kept.len();
        for oldest in kept {
            if count <= self.limits.files && (bytes <= self.limits.bytes || count == 1) {
                return;
            }
            let path = self.path.join(&oldest.name);
            let _ = fs::remove_file(beside(&path));
            let _ = fs::remove_file(path);
            (count, bytes) = (count - 1, bytes.saturating_sub(oldest.bytes));
        }
    }

    /// Returns the reports that this process may remove: its own, and those of ended processes.
    fn kept(&self) -> Vec<Kept> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| self.kept_as(&entry.file_name()));
        named.filter(|kept| kept.pid == std::process::id() || has_ended(kept.pid)).collect()
    }

    /// Parses the name of a report of this program.
    fn kept_as(&self, name: &OsString) -> Option<Kept> {
        let name = name.to_str()?;
        let (time, pid) =
            name.strip_prefix(&self.prefix)?.strip_suffix(".json.gz")?.split_at_checked(LENGTH)?;
        let pid = pid.strip_prefix('-')?.parse().ok().filter(|_| is_stamp(time))?;
        let path = self.path.join(name);
        let size = |path: &Path| fs::symlink_metadata(path).map_or(0, |found| found.len());
        Some(Kept { name: name.to_owned(), pid, bytes: size(&path) + size(&beside(&path)) })
    }
}

/// Returns whether no process has this number. False if the system does not tell.
fn has_ended(pid: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
}

/// Returns the path of the dump beside a report.
fn beside(report: &Path) -> PathBuf {
    report.with_extension("").with_extension("dmd.json.gz")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_newest_are_kept_and_nothing_else_is_touched() {
        let base = std::env::temp_dir().join(format!("memreport-saved-{}", std::process::id()));
        let limits = Limits { files: 3, ..Limits::default() };
        let folder = Folder::new(base.clone(), "my program", limits);
        assert_eq!(folder.results(), None);
        fs::create_dir_all(&base).unwrap();
        let ended = u32::MAX;
        let others = [
            "notes.txt".to_owned(),
            format!("another-20200101-000000-000-{ended}.json.gz"),
            "my_program-20200101-000000-000-1.json.gz".to_owned(),
            "my_program-before.json.gz".to_owned(),
        ];
        let left = format!("my_program-20200101-000000-000-{ended}");
        let killed = format!("incomplete-{ended}-0123456789abcdef-{left}.json.gz");
        let gone = [format!("{left}.json.gz"), format!("{left}.dmd.json.gz"), killed];
        for name in others.iter().chain(&gone) {
            fs::write(base.join(name), "x").unwrap();
        }
        let snapshot = crate::snapshot();
        let saved: Vec<_> = (0..4).map(|_| folder.save(&snapshot).unwrap()).collect();
        let mut expected = others.to_vec();
        expected.extend(
            saved[1..].iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()),
        );
        expected.sort();
        assert_eq!(names(&base), expected, "process 1 is there, and its file is its own");
        assert!(saved.is_sorted(), "{saved:?}");
        assert_eq!(folder.results(), Some(format!("4 reports saved in {}", base.display())));
        let small = Limits { bytes: 1, ..limits };
        let newest = Folder::new(base.clone(), "my program", small).save(&snapshot).unwrap();
        assert!(newest.exists() && names(&base).len() == others.len() + 1);
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn files_of_one_moment_have_names_in_order() {
        let base = std::env::temp_dir().join(format!("memreport-moment-{}", std::process::id()));
        let folder = Folder::new(base.clone(), "program", Limits::default());
        // As after a clock that was set back.
        *folder.last.lock().unwrap() = SystemTime::now() + Duration::from_secs(3600);
        let snapshot = crate::snapshot();
        let saved: Vec<_> = (0..3).map(|_| folder.save(&snapshot).unwrap()).collect();
        assert!(saved[0] < saved[1] && saved[1] < saved[2], "{saved:?}");
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_said_and_harms_nothing() {
        let file = std::env::temp_dir().join(format!("memreport-nosave-{}", std::process::id()));
        fs::write(&file, "in the way").unwrap();
        let folder = Folder::new(file.join("below"), "x", Limits::default());
        assert!(folder.save(&crate::snapshot()).is_err());
        let results = folder.results().unwrap();
        assert!(
            results.contains("0 reports saved in") && results.contains("Not a directory"),
            "{results}"
        );
        fs::remove_file(&file).unwrap();
        folder.save(&crate::snapshot()).unwrap();
        assert!(folder.results().unwrap().starts_with("1 report saved"));
        fs::remove_dir_all(file).unwrap();
    }
}

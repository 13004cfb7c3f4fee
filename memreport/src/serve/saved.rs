//! A folder of reports that a program saves by itself: the last few, each whole.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use crate::snapshot::Snapshot;

/// Where reports are saved, and how many are kept.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    most: usize,
    /// The largest number of reports in a file; the rest is added up.
    most_reports: usize,
    saved: Mutex<Saved>,
}

#[derive(Debug, Default)]
struct Saved {
    count: u64,
    files: VecDeque<PathBuf>,
}

impl Folder {
    pub(super) fn new(path: PathBuf, most: usize, most_reports: usize) -> Self {
        Folder { path, most: most.max(1), most_reports, saved: Mutex::default() }
    }

    /// Saves a report, and removes the oldest of this process where there are too many.
    pub(super) fn save(&self, snapshot: &Snapshot) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })?;
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        saved.count += 1;
        let name = format!("memory-report-{}-{}.json.gz", std::process::id(), saved.count);
        let path = self.path.join(name);
        snapshot.save_at_most(self.most_reports, &path)?;
        saved.files.push_back(path.clone());
        while saved.files.len() > self.most {
            if let Some(oldest) = saved.files.pop_front() {
                // Gone already is as good as removed.
                let _ = fs::remove_file(oldest.with_extension("").with_extension("dmd.json.gz"));
                let _ = fs::remove_file(oldest);
            }
        }
        Ok(path)
    }
}

//! Holds the exact peaks of a run's processes, which recordings of every block show.

use crate::input::dump::read_recording;
use memreport_analysis::recording::Recording;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// The recordings of a run's processes.
#[derive(Debug, Default)]
pub(crate) struct Peaks(Vec<Recording>);

/// The beginning of a recording's name.
const NAME: &str = "recording-";

/// Returns the name of the recordings in the folder, for the program.
pub(super) fn name_in(folder: &Path) -> OsString {
    folder.join(format!("{NAME}%p")).into()
}

impl Peaks {
    /// Reads the recordings in the folder. A damaged one is left out: it has no peak.
    pub(super) fn read(folder: &Path) -> Self {
        let files = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let is_recording = |file: &fs::DirEntry| {
            file.file_name().to_str().is_some_and(|name| name.starts_with(NAME))
        };
        let files = files.filter(is_recording);
        let recordings = files.filter_map(|file| read_recording(&file.path()).ok());
        Peaks(
            recordings
                .filter(|recording| recording.peak().is_some_and(|peak| peak.is_exact))
                .collect(),
        )
    }

    /// Returns the recording of a process, if its peak is exact.
    pub(super) fn of(&self, pid: u32) -> Option<&Recording> {
        self.0.iter().find(|recording| recording.pid == pid)
    }

    /// Returns a note for each process: its exact peak, or the most that was seen.
    pub(super) fn notes(&self, highest: &[(u32, u64)]) -> Vec<String> {
        let note = |(pid, seen): &(u32, u64)| match self.of(*pid).and_then(Recording::peak) {
            Some(peak) => {
                format!("process {pid}: the most that was ever allocated is {} bytes", peak.bytes)
            }
            None => format!("process {pid}: the most that was seen allocated is {seen} bytes"),
        };
        highest.iter().map(note).collect()
    }
}

//! Represents a file with a heap: a dump, or a recording with a heap at each moment.

use super::error::DumpError;
use memreport_analysis::heap::history::{History, HistoryError};
use memreport_analysis::heap::{Heap, HeapOptions};
use memreport_analysis::read::Dump;
use memreport_analysis::recording::Moment;
use std::path::Path;

/// A file with a heap.
#[derive(Debug)]
pub enum DumpSource {
    /// A dump: the heap at one moment.
    Dump(Box<Dump>),
    /// A recording: the heap at each of its moments.
    Recording(Box<History>),
}

impl DumpSource {
    /// Returns the heap: of a recording at a moment, by default at its end.
    ///
    /// # Errors
    ///
    /// The file has no such moment, or lacks the reports that the options need.
    pub fn heap(
        &self,
        at: Option<Moment>,
        options: &HeapOptions,
        path: &Path,
    ) -> Result<Heap, DumpError> {
        match (self, at) {
            (DumpSource::Dump(_), Some(_)) => Err(DumpError::NoTime(path.to_owned())),
            (DumpSource::Dump(dump), None) => Heap::new(dump, options)
                .map_err(|error| DumpError::NoReports(path.to_owned(), error)),
            (DumpSource::Recording(history), at) => {
                let heap = history.heap(time_of(history, at, path)?, options);
                heap.map_err(|error| match error {
                    HistoryError::Recording(error) => DumpError::Recording(path.to_owned(), error),
                    _ => DumpError::Unreported(path.to_owned()),
                })
            }
        }
    }
}

/// Returns the time of a moment, in microseconds since the start of the recording.
///
/// # Errors
///
/// The recording does not have the moment.
pub fn time_of(history: &History, at: Option<Moment>, path: &Path) -> Result<u64, DumpError> {
    let time = history.recording().at(at.unwrap_or(Moment::End));
    time.map_err(|error| DumpError::Moment(path.to_owned(), error))
}

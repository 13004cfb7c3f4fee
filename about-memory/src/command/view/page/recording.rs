//! Holds a recording for a page: its sums over time, and its blocks in intervals.

use crate::error::Failure;
use crate::input::dump::{DumpError, DumpReader, DumpSource};
use crate::input::kind::FileKind;
use memreport_analysis::heap::{Frames, HeapOptions};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// The number of intervals whose ends a page can show the heap at.
const INTERVALS: u32 = 240;

/// A recording, as a page shows it.
#[derive(Debug)]
pub(crate) struct PageRecording {
    name: String,
    pub(crate) json: Vec<u8>,
}

impl PageRecording {
    /// Returns whether the file at `path` is a recording.
    pub(crate) fn is_at(path: &Path) -> bool {
        FileKind::of(path) == Some(FileKind::Recording)
    }

    /// Reads and symbolicates a recording.
    ///
    /// # Errors
    /// The file is no recording.
    pub(crate) fn of_file(path: &Path, notes: &mut dyn Write) -> Result<PageRecording, Failure> {
        let name = path.display().to_string();
        let DumpSource::Recording(history) = DumpReader::default().open(path, notes)? else {
            return Err(format!("{name}: this is no recording").into());
        };
        let mut options = HeapOptions::default();
        options.frames = Frames::Own;
        let columns = history.columns(INTERVALS, &options);
        let columns = columns.map_err(|error| DumpError::History(vec![path.to_owned()], error))?;
        Ok(PageRecording { name, json: columns.to_string().into_bytes() })
    }

    /// Returns the data that a page needs for its list of recordings.
    pub(crate) fn summary(&self) -> Value {
        let label = Path::new(&self.name).file_name().and_then(|name| name.to_str());
        json!({ "name": label.unwrap_or(&self.name), "place": self.name })
    }
}

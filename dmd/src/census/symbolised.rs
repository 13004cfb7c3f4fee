//! Censuses of the running program with its functions, files, crates and types looked up.

use memreport::__private::{Findings, as_own};
use memreport::Collector;
use memreport_analysis::census::{Breakdown, Census, FileOptions, of_dump};
use memreport_analysis::heap::Frames;
use memreport_analysis::read::{self, ReadError};
use memreport_analysis::symbols::{Options, Symboliser};

use crate::collect::holders;

/// As [`take_census`](super::take_census), with functions, files, crates and types looked up in the program's own file: `None` while
/// DMD sleeps.
///
/// # Errors
///
/// If the program's dump cannot be read back.
///
/// # Panics
///
/// When a reporter calls it: collections do not nest.
pub fn take_symbolised(breakdown: &Breakdown, frames: Frames) -> Result<Option<Census>, ReadError> {
    let collector = Collector::default().quick().moment("asked for a census");
    let snapshot = holders::unwanted(|| collector.snapshot());
    as_own(|| {
        let Some(found) = crate::Dump::of(&snapshot) else { return Ok(None) };
        let mut json = Vec::new();
        found.write(&mut json).map_err(ReadError::Io)?;
        let mut dump = read::read_slice(&json)?;
        drop(json);
        // On this thread alone: another one's memory would be taken for the program's.
        let mut options = Options::default();
        options.threads = Some(1);
        let notes = Symboliser::new(options).symbolicate(&mut dump).notes;
        dump.notes.extend(notes);
        let mut options = FileOptions::default();
        options.frames = frames;
        Ok(Some(of_dump(&dump, breakdown, &options)))
    })
}

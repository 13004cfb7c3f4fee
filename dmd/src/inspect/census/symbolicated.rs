//! Takes a symbolicated census of the running program: with functions, files, crates and types.

use memreport::__private::{Findings, as_own};
use memreport::Collector;
use memreport_analysis::census::{Breakdown, Census, FileOptions, of_dump};
use memreport_analysis::heap::Frames;
use memreport_analysis::read::{self, ReadError};
use memreport_analysis::symbols::{Options, Symboliser};

use crate::collect::holders::enabled::without_holders;

/// Counts the live blocks of this program by a breakdown, with symbols; `None` while DMD is asleep.
///
/// Like [`take_census`](super::take_census), and also symbolicates functions, files, crates and
/// types from the program's own file. That takes seconds, and memory that the census does not
/// count.
///
/// ```
/// use dmd::census::{Breakdown, take_symbolicated};
/// use memreport_analysis::heap::Frames;
///
/// dmd::global_allocator!();
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// dmd::start("--mode=live".parse()?)?;
/// let words: Vec<String> = (0..1000).map(|number| format!("word {number}")).collect();
/// let breakdown = Breakdown::of_words("type")?;
/// let census = take_symbolicated(&breakdown, Frames::Own)?.ok_or("DMD is asleep")?;
/// assert!(census.root().amount.count >= 1000);
/// # drop(words);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// If the program's own dump cannot be read.
///
/// # Panics
///
/// If a reporter calls it, because collections do not nest.
pub fn take_symbolicated(
    breakdown: &Breakdown,
    frames: Frames,
) -> Result<Option<Census>, ReadError> {
    let collector = Collector::default().quick().moment("requested for a census");
    let snapshot = without_holders(|| collector.snapshot());
    as_own(|| {
        let Some(findings) = crate::Dump::of(&snapshot) else { return Ok(None) };
        let mut json = Vec::new();
        findings.write(&mut json).map_err(ReadError::Io)?;
        let mut dump = read::read_slice(&json)?;
        drop(json);
        // One thread, because the memory of other threads would count as the program's.
        let mut options = Options::default();
        options.threads = Some(1);
        let notes = Symboliser::new(options).symbolicate(&mut dump).notes;
        dump.notes.extend(notes);
        let mut options = FileOptions::default();
        options.frames = frames;
        Ok(Some(of_dump(&dump, breakdown, &options)))
    })
}

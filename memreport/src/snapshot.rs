//! Defines the snapshot, which holds all reports of one moment, and the file format for it.
//!
//! The file is Firefox's memory report, version 1, with additional fields where Firefox allows
//! them.

pub mod read;
mod bound;
#[cfg(unix)]
pub(crate) mod descriptor;
pub(crate) mod files;
mod write;
#[cfg(unix)]
pub(crate) mod spool;
#[cfg(feature = "std")]
pub(crate) mod stamp;
#[cfg(feature = "std")]
pub(crate) mod collect;

pub use write::atomically;
#[cfg(unix)]
pub(crate) use write::own_name;

use std::any::Any;
use std::borrow::Cow;
use std::path::Path;
use std::time::SystemTime;
use std::{fmt, io};

use crate::event::memory_event::MemoryEvent;
use crate::event::on_alloc::as_own;
use crate::field::SkippedField;
#[cfg(unix)]
use crate::process::environment::temporary_folder;
use crate::report::Report;
use crate::report::missed::Missed;
use crate::tracker::findings::Findings;

/// All reports of one moment.
#[non_exhaustive]
pub struct Snapshot {
    /// The reports, in the order in which they were made. If some were missed, the last one is
    /// [`HEAP_UNCLASSIFIED_OR_MISSED`].
    pub reports: Vec<Report>,
    /// Sentences about values that were busy and reporters that failed.
    pub notes: Vec<String>,
    /// True if sizes come from the allocator. Otherwise they come from layouts, without slop.
    pub has_usable_sizes: bool,
    /// The fields that types do not measure, with the reasons.
    pub skipped: Vec<SkippedField>,
    /// The moment of the program at which the snapshot was taken, such as "after the index was
    /// built".
    pub moment: Cow<'static, str>,
    /// The time at which the snapshot was taken.
    pub time: SystemTime,
    /// The name of the program's allocator, if its statistics were read.
    pub allocator: Option<&'static str>,
    /// The last cycles of work on the program's memory, oldest first. Retained while a handler is
    /// registered.
    pub events: Vec<MemoryEvent>,
    /// True if reporters were asked to leave out private words.
    pub is_anonymized: bool,
    pub(crate) missed: Vec<Missed>,
    /// The paths of the program's reporters, which viewers keep in sight.
    pub(crate) reporters: Vec<String>,
    pub(crate) findings: Option<Box<dyn Findings>>,
}

/// The path at which an incomplete snapshot reports the bytes of the heap that no report names. It
/// takes the place of `heap-unclassified`, which viewers compute and which is 0 then.
pub const HEAP_UNCLASSIFIED_OR_MISSED: &str = "explicit/heap-unclassified-or-missed";

impl Snapshot {
    /// Writes a memory report file for `about-memory` and Firefox's about:memory, gzipped if the
    /// name ends in `.gz`.
    ///
    /// While DMD is awake, its dump is written beside it: `heap.dmd.json.gz` beside `heap.json.gz`.
    /// Both appear under their names only when they are complete.
    ///
    /// # Errors
    ///
    /// Returns errors of creating, writing or renaming the files. The message names the file.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        as_own(|| self.save_both(path.as_ref()))
    }

    /// Saves at most `most` single reports. The smaller ones are added up by their first two
    /// segments.
    #[cfg(unix)]
    pub(crate) fn save_at_most(&self, most: usize, path: &Path) -> io::Result<()> {
        as_own(|| self.save_with(&bound::bound(&self.reports, most), path))
    }

    /// Returns the gzipped report file.
    #[cfg(unix)]
    pub(crate) fn to_gzip(&self) -> io::Result<Vec<u8>> {
        write::gzipped(Vec::new(), |out| write::write(self, &self.reports, out))
    }

    /// Returns the gzipped dump file, if DMD is awake. A large one is in a file without a name.
    #[cfg(unix)]
    pub(crate) fn dump_to_gzip(&self) -> Option<io::Result<spool::Spooled>> {
        let findings = self.findings.as_ref()?;
        let spool = spool::Spool::new(temporary_folder());
        let written = write::gzipped(spool, |out| findings.write(out));
        Some(written.map(spool::Spool::into_written))
    }

    /// Returns the reporters and values that the snapshot misses: locked for too long, still
    /// running, or panicked. If there are any, the snapshot is incomplete.
    #[must_use]
    pub fn missed(&self) -> &[Missed] {
        &self.missed
    }

    fn save_both(&self, path: &Path) -> io::Result<()> {
        self.save_with(&self.reports, path)
    }

    fn save_with(&self, reports: &[Report], path: &Path) -> io::Result<()> {
        if let Some(findings) = &self.findings {
            findings.save_beside(path)?;
        }
        write::save(self, reports, path)?;
        if let Some(findings) = &self.findings {
            findings.saved(path);
        }
        Ok(())
    }

    /// Returns the tracker's findings in this collection, for the crate that defines their type.
    #[must_use]
    pub fn findings(&self) -> Option<&dyn Any> {
        self.findings.as_deref().map(Findings::as_any)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Snapshot")
            .field("moment", &self.moment)
            .field("reports", &self.reports.len())
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

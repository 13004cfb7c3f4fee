//! A snapshot: all reports of one moment, and the file they are saved in.
//!
//! The file is Firefox's memory report, version 1, with fields of our own where Firefox allows them.

pub mod read;
mod bound;
mod write;
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
use crate::report::Report;
use crate::tracker::findings::Findings;

/// All reports of one moment.
#[non_exhaustive]
pub struct Snapshot {
    /// The reports, in the order in which they came.
    pub reports: Vec<Report>,
    /// What numbers cannot say: values that were busy, reporters that failed.
    pub notes: Vec<String>,
    /// Whether sizes were asked of the allocator; otherwise they come from layouts, and slop is not in them.
    pub sizes_asked: bool,
    /// The fields that types do not measure, and why.
    pub skipped: Vec<SkippedField>,
    /// At which moment of the program it was taken: "asked for by the program".
    pub moment: Cow<'static, str>,
    /// When it was taken.
    pub time: SystemTime,
    /// What the program's allocator is called, where it says how much memory it has.
    pub allocator: Option<&'static str>,
    /// The last cycles of work on the program's memory, the oldest first; kept while somebody listens for them.
    pub events: Vec<MemoryEvent>,
    pub(crate) findings: Option<Box<dyn Findings>>,
}

impl Snapshot {
    /// Writes a memory report file that `about-memory` and Firefox's about:memory open; gzipped if the name ends in `.gz`.
    ///
    /// While DMD is awake, its dump is written beside it: `heap.json.gz` gets a `heap.dmd.json.gz`. Both appear under
    /// their names only when they are complete.
    ///
    /// # Errors
    ///
    /// Those of making, writing or renaming the files; the message names the file.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        as_own(|| self.save_both(path.as_ref()))
    }

    /// The same, with at most so many reports as they are: the smallest are added up by their first two names.
    #[cfg(unix)]
    pub(crate) fn save_at_most(&self, most: usize, path: &Path) -> io::Result<()> {
        as_own(|| self.save_with(&bound::bound(&self.reports, most), path))
    }

    /// The report's file, gzipped.
    #[cfg(unix)]
    pub(crate) fn to_gzip(&self) -> io::Result<Vec<u8>> {
        write::gzipped(|out| write::write(self, &self.reports, out))
    }

    /// The dump's file, gzipped, while DMD is awake.
    #[cfg(unix)]
    pub(crate) fn dump_to_gzip(&self) -> Option<io::Result<Vec<u8>>> {
        let findings = self.findings.as_ref()?;
        Some(write::gzipped(|out| findings.write(out)))
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

    /// What the tracking allocator found in this collection, for the crate that knows the type.
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

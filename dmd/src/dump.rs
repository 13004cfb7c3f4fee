//! The dump as a file: Mozilla's DMD format 5, with an extension key of our own.
//!
//! Only this room contains the format. Reading order: `write` (the file from start to end),
//! `blocks` and `scanned` (the block list), `keys` and `tables` (stacks, reports and frames),
//! `modules` (addresses in the files of modules), `extension` (the key `memreport`), `log` (a log
//! of allocations as a dump).
//!
//! Invariant: a file under its final name is complete.

mod blocks;
mod extension;
mod keys;
mod log;
pub(crate) mod modules;
mod tables;
mod scanned;
mod write;

pub(crate) use extension::span_fields;
pub(crate) use log::write_log;

use std::any::Any;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use memreport::__private::{Attributed, Findings, atomically};

use crate::collect::findings::AttributedBytes;
pub use crate::collect::{Dump, Estimate, Sampled, Sum, Summary};
use crate::mem::lazy_slice::mapped_bytes;
use crate::sample::plan;

/// A callback for each saved report, with its path and the moment of its snapshot.
type OnSaved = fn(&Path, &str);

static ON_SAVED: OnceLock<OnSaved> = OnceLock::new();

/// Sets a callback for each report that is saved together with its dump. Only the first call has
/// an effect.
pub(crate) fn on_saved(hook: OnSaved) {
    let _ = ON_SAVED.set(hook);
}

impl Dump {
    /// Writes the dump to a file, gzipped if the name ends in `.gz`.
    ///
    /// The file gets its name when it is complete, so that no reader sees a part of it.
    ///
    /// # Errors
    ///
    /// If the file cannot be created, written or renamed. The message contains its name.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        atomically(path, |out| write::write(self, out))?;
        if plan::shows_stats() {
            self.show_stats(path);
        }
        Ok(())
    }

    /// Prints the statistics of `--show-dump-stats=yes`.
    #[expect(clippy::print_stderr, reason = "an option of $DMD")]
    fn show_stats(&self, path: &Path) {
        let Summary { unreported, once, twice, allocated_during, .. } = self.summary;
        eprintln!(
            "DMD[{}] {}: {} blocks in {} groups, {} more allocated during the collection; {} bytes of tables",
            std::process::id(),
            path.display(),
            unreported.blocks + once.blocks + twice.blocks,
            self.contents.groups.iter().count(),
            allocated_during.blocks,
            mapped_bytes(),
        );
    }
}

/// Returns the path of the dump that belongs to a report: `heap.dmd.json.gz` for `heap.json.gz`.
///
/// ```
/// use std::path::Path;
///
/// assert_eq!(dmd::dump::beside(Path::new("a/heap.json")), Path::new("a/heap.dmd.json"));
/// ```
#[must_use]
pub fn beside(report: &Path) -> PathBuf {
    let name = report.file_name().unwrap_or_default().to_string_lossy();
    let (stem, ending) = match () {
        () if name.ends_with(".json.gz") => name.split_at(name.len() - ".json.gz".len()),
        () if name.ends_with(".gz") => name.split_at(name.len() - ".gz".len()),
        () if name.ends_with(".json") => name.split_at(name.len() - ".json".len()),
        () => (&*name, ""),
    };
    let ending = if ending.contains("json") { ending.to_owned() } else { format!(".json{ending}") };
    report.with_file_name(format!("{stem}.dmd{ending}"))
}

impl Findings for Dump {
    fn heap_allocated(&self) -> usize {
        self.summary.heap_allocated + self.summary.reported_transient
    }

    fn attributed(&self, report: &mut dyn FnMut(Attributed<'_>)) {
        // A profile has a sample of the blocks, and no exact sums.
        if self.contents.sampled.is_none() {
            for AttributedBytes { path, bytes, by } in &self.contents.attributed {
                report(Attributed { path, bytes: *bytes, by: *by });
            }
        }
    }

    fn attribution_notes(&self, note: &mut dyn FnMut(&str)) {
        self.contents.attribution_notes.iter().for_each(|text| note(text));
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write::write(self, out)
    }

    fn save_beside(&self, report: &Path) -> io::Result<()> {
        self.save(beside(report))
    }

    fn saved(&self, report: &Path) {
        if let Some(hook) = ON_SAVED.get() {
            hook(report, &self.moment);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_named_after_its_report() {
        let table = [
            ("heap.json.gz", "heap.dmd.json.gz"),
            ("a/heap.json", "a/heap.dmd.json"),
            ("heap.gz", "heap.dmd.json.gz"),
            ("heap", "heap.dmd.json"),
        ];
        for (report, dump) in table {
            assert_eq!(beside(Path::new(report)), Path::new(dump), "{report}");
        }
    }
}

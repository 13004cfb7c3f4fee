//! The dump as a file: Mozilla's DMD format 5, with an extension key of our own.
//!
//! This folder alone contains the format.

pub(crate) mod write;

pub(crate) use write::write_log;

use std::any::Any;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use memreport::__private::{Findings, atomically};

pub use crate::collect::{Dump, Estimate, Sampled, Sum, Summary};
use crate::mem::lazy_slice::mapped_bytes;
use crate::sample::plan;

/// A function that hears of each saved report: its path, and the moment of its snapshot.
type OnSaved = fn(&Path, &str);

static ON_SAVED: OnceLock<OnSaved> = OnceLock::new();

/// Calls `hook` whenever a report is saved together with its dump.
pub(crate) fn on_saved(hook: OnSaved) {
    // The first hook stays; there is one in the process.
    let _ = ON_SAVED.set(hook);
}

impl Dump {
    /// Writes the dump, gzipped if the name ends in `.gz`, such that it is never seen half written.
    ///
    /// # Errors
    ///
    /// Those of making, writing or renaming the file; the message names it.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        atomically(path, |out| write::write(self, out))?;
        if plan::shows_stats() {
            self.show_stats(path);
        }
        Ok(())
    }

    /// What `--show-dump-stats=yes` asks for.
    #[expect(clippy::print_stderr, reason = "asked for in $DMD")]
    fn show_stats(&self, path: &Path) {
        let Summary { unreported, once, twice, allocated_during, .. } = self.summary;
        eprintln!(
            "DMD[{}] {}: {} blocks in {} groups, {} more born meanwhile; {} bytes of tables",
            std::process::id(),
            path.display(),
            unreported.blocks + once.blocks + twice.blocks,
            self.contents.kinds.iter().count(),
            allocated_during.blocks,
            mapped_bytes(),
        );
    }
}

/// The dump's name beside that of a report: `heap.json.gz` gets `heap.dmd.json.gz`.
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
        self.summary.heap_allocated
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
    fn a_dump_stands_beside_its_report() {
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

    #[test]
    fn the_books_add_up() {
        let sum = |bytes| Sum { blocks: 1, bytes };
        let summary = Summary {
            unreported: sum(100),
            once: sum(1000),
            twice: sum(50),
            short: 7,
            over_reported: 50,
            unmeasured: 3,
            ..Summary::default()
        };
        assert_eq!(summary.unclassified(), 100 + 7 - 50 - 3);
    }
}

//! A dump: all blocks of one moment, those that are alike together, and who reports them.
//!
//! The file is Mozilla's DMD format 5, with an extension key of our own; this folder alone knows it.

pub(crate) mod write;

pub(crate) use write::write_log;

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use memreport::__private::{Findings, atomically};
use memreport::Field;

use crate::track::age::Age;
use crate::track::books::{Kind, Kinds, ReportSet};
use crate::track::entry::Block;
use crate::track::holders::{HolderId, Holders};
use crate::track::options::Mode;
use crate::track::pages::{self, PageList};
use crate::track::scan::Place;
use crate::track::sites::{self, SiteId};
use crate::track::sys::{self, Module};
use crate::track::walk::tally::Tally;
use crate::track::{plan, start, thread, walk};

/// What DMD found in one collection. [`of`](Self::of) gets it from a snapshot.
///
/// The collection is a moment: blocks that were born before it began and live when it ends are in the dump, exactly once
/// each. Those that other threads make or give back meanwhile are left out, and what was reported of them is listed as freed
/// since. Under [`Mode::Scan`] it ends at one instant, of which a copy of the heap is read.
#[derive(Debug)]
pub struct Dump {
    variable: Option<String>,
    mode: Mode,
    moment: String,
    uptime: Duration,
    summary: Summary,
    contents: Contents,
    modules: Vec<Module>,
    /// Number, kernel's number, name of those that live.
    threads: Vec<(u32, u32, Option<String>)>,
    unwinder: &'static str,
    /// New blocks get the time at which they are made.
    has_times: bool,
    tally: Tally,
}

/// The blocks, and what is said of them.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) kinds: Kinds,
    /// The blocks one by one.
    pub(crate) scanned: Option<Scanned>,
    /// Who reports, by number.
    pub(crate) reports: Vec<Report>,
    pub(crate) wrong: Vec<WrongReport>,
    /// What went wrong, as sentences.
    pub(crate) notes: Vec<String>,
    pub(crate) sampled: Option<Sampled>,
    /// The fields that were visited or skipped.
    pub(crate) fields: PageList<&'static Field>,
    pub(crate) holders: Holders,
    /// What the tracker's own tables take.
    pub(crate) tracker_bytes: usize,
}

/// Blocks with their addresses, and the file that has what was in them.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// `None` if the contents are missing.
    pub(crate) file: Option<File>,
    pub(crate) blocks: PageList<ScannedBlock>,
}

/// A block of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedBlock {
    pub(crate) address: usize,
    pub(crate) block: Block,
    pub(crate) reports: ReportSet,
    pub(crate) holder: HolderId,
    pub(crate) age: Age,
    pub(crate) contents: Option<Place>,
}

/// A number of blocks and their usable bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub blocks: usize,
    /// Their bytes, slop included.
    pub bytes: usize,
}

impl Sum {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.blocks += 1;
        self.bytes += bytes;
    }

    pub(crate) fn and(self, other: Sum) -> Sum {
        Sum { blocks: self.blocks + other.blocks, bytes: self.bytes + other.bytes }
    }
}

/// What a sample says of all blocks, with its spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// How many blocks.
    pub blocks: f64,
    /// Their usable bytes.
    pub bytes: f64,
    pub(crate) variance: f64,
}

impl Estimate {
    /// The standard error of [`bytes`](Self::bytes): the true number lies within twice that in nineteen of twenty samples,
    /// where the sample has a few dozen blocks at least.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.variance.sqrt()
    }
}

/// The books of a profile, extrapolated from the blocks in the sample to those made since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sampled {
    /// All blocks.
    pub all: Estimate,
    /// Blocks that nobody reports.
    pub unreported: Estimate,
    /// Blocks that one reporter reports.
    pub once: Estimate,
    /// Blocks that are reported twice or more.
    pub twice: Estimate,
}

/// The books of one collection. All are usable bytes of blocks that were born before the collection and live still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// All blocks, by the allocator's counters.
    pub heap_allocated: usize,
    /// Blocks that nobody reports.
    pub unreported: Sum,
    /// Blocks that one reporter reports.
    pub once: Sum,
    /// Blocks that are reported twice or more.
    pub twice: Sum,
    /// Bytes of reported blocks that their first report leaves out.
    pub short: usize,
    /// Bytes that were reported beyond what the blocks have: doubles, non-heap, interior, freed since.
    pub over_counted: usize,
    /// Bytes that were reported as heap without having been measured block by block.
    pub unmeasured: i64,
    /// Blocks that the table was never told of: made before tracking began or while it was off, or not in the sample. None of
    /// the sums above has them.
    pub untracked: Sum,
    /// Bytes of such blocks that are reported.
    pub reported_untracked: usize,
    /// Blocks that were born during the collection, and are in none of these.
    pub born_during: Sum,
    /// Blocks that the table had no place for.
    pub lost_blocks: usize,
    /// Claims that memory was short for.
    pub lost_marks: usize,
}

impl Summary {
    /// What `heap-unclassified` must be by these books, in bytes: found from the blocks, where a viewer subtracts the
    /// reports from `heap-allocated`. The two agree to the byte in a program that is quiet during the collection.
    #[must_use]
    pub fn unclassified(&self) -> i64 {
        let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        signed(self.unreported.bytes) + signed(self.short)
            - signed(self.over_counted)
            - self.unmeasured
            + signed(self.untracked.bytes)
            - signed(self.reported_untracked)
    }
}

/// Live blocks that are alike.
#[derive(Debug)]
pub(crate) struct Group<'d> {
    pub(crate) kind: Kind,
    pub(crate) reports: Vec<&'d Report>,
    pub(crate) count: u64,
}

/// Who reports: a reporter, and the field through which it came to the block.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) path: String,
    pub(crate) field: Option<&'static Field>,
}

/// A report that is no block's, or not all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongReport {
    pub(crate) is: WrongIs,
    pub(crate) address: usize,
    pub(crate) claimed: usize,
    /// The number of the report.
    pub(crate) report: u32,
    pub(crate) block: Option<WrongBlock>,
}

/// The block that a wrong report is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongBlock {
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) site: SiteId,
    /// Of a report that points into the block: who reports the block itself.
    pub(crate) reports: ReportSet,
}

/// What is wrong with a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WrongIs {
    NonHeap,
    Interior,
    Partial,
    FreedSince,
}

impl WrongIs {
    pub(crate) fn name(self) -> &'static str {
        match self {
            WrongIs::NonHeap => "non-heap",
            WrongIs::Interior => "interior",
            WrongIs::Partial => "partial",
            WrongIs::FreedSince => "freed-since",
        }
    }
}

impl Dump {
    pub(crate) fn new(contents: Contents, summary: Summary, moment: &str) -> Self {
        Dump {
            variable: start::variable_text().map(str::to_owned),
            mode: plan::mode(),
            moment: moment.to_owned(),
            uptime: sys::uptime(),
            summary,
            contents,
            modules: sys::modules(),
            threads: thread::met().map(|(number, id)| (number, id, sys::thread_name(id))).collect(),
            unwinder: walk::unwinder().name(),
            has_times: plan::plan().keeps_times(),
            tally: walk::tally(),
        }
    }

    /// What DMD found when this snapshot was taken; `None` if it slept.
    #[must_use]
    pub fn of(snapshot: &memreport::Snapshot) -> Option<&Dump> {
        snapshot.findings()?.downcast_ref()
    }

    /// The books.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Under [`Mode::Profile`], what the sample says of all blocks.
    #[must_use]
    pub fn sampled(&self) -> Option<Sampled> {
        self.contents.sampled
    }

    /// Reports that are no block's, or not all of it: what is wrong, and with whose report, as a sentence each.
    #[must_use]
    pub fn wrong_reports(&self) -> Vec<String> {
        self.contents.wrong.iter().map(|wrong| self.describe(wrong)).collect()
    }

    fn describe(&self, wrong: &WrongReport) -> String {
        let reporter = self.report(wrong.report).map_or_else(String::new, Report::describe);
        let claimed = wrong.claimed;
        match wrong.is {
            WrongIs::NonHeap => {
                format!("{reporter} reports {claimed} bytes that are not on the heap")
            }
            WrongIs::Interior => {
                format!("{reporter} reports {claimed} bytes inside a block, not at its start")
            }
            WrongIs::FreedSince => {
                format!("{reporter} reports {claimed} bytes of a block that was freed since")
            }
            WrongIs::Partial => {
                let usable = wrong.block.map_or(0, |block| block.usable);
                format!("{reporter} reports {claimed} bytes of a block that has {usable}")
            }
        }
    }

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
        let Summary { unreported, once, twice, born_during, .. } = self.summary;
        eprintln!(
            "DMD[{}] {}: {} blocks in {} groups, {} more born meanwhile; {} bytes of tables",
            std::process::id(),
            path.display(),
            unreported.blocks + once.blocks + twice.blocks,
            self.contents.kinds.iter().count(),
            born_during.blocks,
            pages::mapped(),
        );
    }

    /// The live blocks by the bytes that were asked for.
    #[must_use]
    pub fn by_requested_size(&self) -> BTreeMap<usize, Sum> {
        let mut sizes = BTreeMap::<usize, Sum>::new();
        for (kind, count) in self.contents.kinds.iter().filter(|(kind, _)| !kind.is_dead) {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let sum = sizes.entry(kind.requested).or_default();
            *sum = sum.and(Sum { blocks: count, bytes: count * kind.usable });
        }
        sizes
    }

    /// Live blocks that are alike, who reports them, and how many they are.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let Contents { kinds, reports, .. } = &self.contents;
        let live = kinds.iter().filter(|(kind, _)| !kind.is_dead);
        live.map(|(kind, count)| {
            let numbers = kinds.reports(kind.reports);
            let reports = numbers.filter_map(|number| reports.get(number as usize)).collect();
            Group { kind: *kind, reports, count }
        })
    }

    pub(crate) fn report(&self, number: u32) -> Option<&Report> {
        self.contents.reports.get(number as usize)
    }

    /// What was recorded.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    pub(crate) fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Number, kernel's number and name of threads.
    pub(crate) fn threads(&self) -> &[(u32, u32, Option<String>)] {
        &self.threads
    }

    pub(crate) fn stack(site: SiteId) -> Option<u32> {
        sites::site(site).map(|site| site.stack).filter(|stack| *stack != 0)
    }
}

impl Report {
    /// The path, and the field if one is known.
    pub(crate) fn describe(&self) -> String {
        match self.field {
            None => self.path.clone(),
            Some(field) => format!("{} through {field:?}", self.path),
        }
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
        crate::run::saved(report, &self.moment);
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
            over_counted: 50,
            unmeasured: 3,
            ..Summary::default()
        };
        assert_eq!(summary.unclassified(), 100 + 7 - 50 - 3);
    }
}

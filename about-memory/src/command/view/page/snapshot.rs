//! Holds a memory report for a page: its reports, figures and DMD's dump.

use crate::error::Failure;
use crate::input::dump::DumpReader;
use crate::input::folder;
use crate::input::kind::FileKind;
use crate::input::open::{self, Ignore, NamedBytes, OpenError};
use crate::render::page::reports::Reports;
use crate::report::diff::pair::Compared;
use crate::report::filter::Filter;
use crate::report::page::file_builder::{Opened, writer_name};
use crate::report::page::{Page, ProcessPage};
use crate::report::report_tree::ReportTree;
use crate::report::resident::{Blocks, ProcessSnapshot, ProcessSnapshots};
use crate::report::tree::{Settings, Tree};
use memreport::snapshot::read::{self, Entry, Options, Sink};
use memreport_analysis::read::Extension;
use serde_json::{Value, json};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A memory report, with everything that a page shows of it.
#[derive(Debug)]
pub(crate) struct PageSnapshot {
    /// The name of a file or of a running program.
    pub(crate) name: String,
    /// The bytes of the file, gzipped or not.
    pub(crate) report: Vec<u8>,
    options: Options,
    pub(crate) dump: Option<Dump>,
    /// The figures of resident memory, if the report has them.
    pub(crate) resident: Option<ProcessSnapshot>,
    /// The sums of the dump's blocks, once it has been read.
    pub(crate) blocks: OnceLock<Option<Blocks>>,
    taken: Option<SystemTime>,
    /// The name of its first process, with its pid.
    process: String,
    /// False for a dump without the report that it belongs to.
    has_reports: bool,
    figures: Value,
    notes: Vec<String>,
}

/// The place of DMD's dump of the same moment.
#[derive(Debug)]
pub(crate) enum Dump {
    /// In a file beside the report.
    File(PathBuf),
    /// In memory.
    Bytes(Vec<u8>),
}

impl PageSnapshot {
    /// Reads a report from a file, and finds the dump beside it.
    pub(crate) fn of_file(path: &Path, options: Options) -> Result<PageSnapshot, OpenError> {
        let name = path.display().to_string();
        let dump = folder::dump_of(path).map(Dump::File);
        let taken = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let mut snapshot = PageSnapshot::of_bytes(name, open::load(path)?, options)?;
        (snapshot.dump, snapshot.taken) = (dump, snapshot.taken.or(taken));
        Ok(snapshot)
    }

    /// Reads a report, or a dump with the report that it lies beside, if there is one.
    pub(crate) fn of_report_or_dump(path: &Path, options: Options) -> Result<Self, Failure> {
        if FileKind::of(path) != Some(FileKind::Dump) {
            return Ok(PageSnapshot::of_file(path, options)?);
        }
        if let Some(report) = report_beside(path) {
            return Ok(PageSnapshot::of_file(&report, options)?);
        }
        let extension = DumpReader::load_amounts(path)?.extension;
        let mut snapshot =
            PageSnapshot::of_bytes(path.display().to_string(), NO_REPORTS.into(), options)?;
        snapshot.has_reports = false;
        snapshot.process = extension.as_ref().map(process_of).unwrap_or_default();
        snapshot.taken = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        snapshot.dump = Some(Dump::File(path.to_owned()));
        Ok(snapshot)
    }

    /// Returns whether it has the reports of its moment.
    pub(crate) fn has_reports(&self) -> bool {
        self.has_reports
    }

    /// Reads a report from memory.
    pub(crate) fn of_bytes(
        name: String,
        report: Vec<u8>,
        options: Options,
    ) -> Result<PageSnapshot, OpenError> {
        // Refuse invalid reports here, with the message of the command line.
        let settings = Settings { is_verbose: true, ..Settings::default() };
        let Opened { file, notes, .. } = open::open_bytes(
            NamedBytes { name: &name, bytes: &report },
            options,
            Filter::All,
            &settings,
        )?;
        let (mut figures, mut first) = (Value::Null, String::new());
        let files = [file];
        // An error leaves the figures empty; the trees report it.
        let _ = Page::new(&files, &settings).processes(|process| {
            figures = figures_of(&process);
            process.name.clone_into(&mut first);
            // The first process is the main one. Stop after it.
            Err(())
        });
        let resident = resident_of(&report, options);
        let time = resident.as_ref().and_then(|resident| resident.time_ms);
        let taken = time.and_then(|time| UNIX_EPOCH.checked_add(Duration::from_millis(time)));
        let (dump, blocks) = (None, OnceLock::new());
        Ok(PageSnapshot {
            name,
            report,
            options,
            dump,
            resident,
            blocks,
            taken,
            process: first,
            has_reports: true,
            figures,
            notes,
        })
    }

    /// Adds a dump, and the time if the report has none.
    pub(crate) fn taken(mut self, at: SystemTime, dump: Option<Vec<u8>>) -> PageSnapshot {
        self.taken = self.taken.or(Some(at));
        self.dump = dump.map(Dump::Bytes).or(self.dump);
        self
    }

    /// Returns whether the report states that it has no private words.
    pub(crate) fn is_anonymized(&self) -> bool {
        read::read(&mut &self.report[..], self.options, &mut Ignore)
            .is_ok_and(|header| header.own.is_anonymized)
    }

    /// Returns the memory that it takes.
    #[cfg(feature = "serve")]
    pub(crate) fn bytes(&self) -> usize {
        let dump = match &self.dump {
            Some(Dump::Bytes(bytes)) => bytes.len(),
            Some(Dump::File(_)) | None => 0,
        };
        self.report.len() + dump
    }

    /// Returns the data that a page needs for its list of snapshots.
    pub(crate) fn summary(&self) -> Value {
        let taken = self.taken.and_then(|taken| taken.duration_since(UNIX_EPOCH).ok());
        let sheets = [
            ("dark", self.dump.is_some()),
            ("heap", self.dump.is_some()),
            ("coverage", self.dump.is_some()),
            ("resident", self.resident.is_some()),
        ];
        let sheets: Vec<&str> =
            sheets.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name).collect();
        json!({
            "name": self.label(), "place": self.name, "taken": taken.map(|taken| taken.as_secs_f64() * 1000.0),
            "process": self.process, "figures": self.figures, "notes": self.notes, "sheets": sheets,
            "hasReports": self.has_reports,
        })
    }

    /// Returns the name without the folder.
    fn label(&self) -> &str {
        Path::new(&self.name).file_name().and_then(|name| name.to_str()).unwrap_or(&self.name)
    }

    /// Returns its reports as JSON.
    pub(crate) fn reports(&self) -> Result<Vec<u8>, Failure> {
        let mut reports = Reports::default();
        let header = read::read(&mut &self.report[..], self.options, &mut reports)?;
        let knows_usable_size = header.usable_size.is_truthy();
        let writer = writer_name(&header);
        reports.name_reporters(header.own.reporters);
        Ok(reports.finish(writer.as_deref(), knows_usable_size))
    }
}

/// The reports of a dump that lies beside none.
const NO_REPORTS: &str = r#"{"version":1,"hasMozMallocUsableSize":true,"reports":[]}"#;

/// Returns the report that a dump lies beside: `heap.json.gz` of `heap.dmd.json.gz`.
fn report_beside(dump: &Path) -> Option<PathBuf> {
    let name = dump.file_name()?.to_str()?;
    let (stem, ending) = name.rsplit_once(".dmd.json")?;
    let report = dump.with_file_name(format!("{stem}.json{ending}"));
    (folder::beside(&report) == dump && report.is_file()).then_some(report)
}

/// Returns the name of the process that a dump is of, with its pid.
fn process_of(dump: &Extension) -> String {
    let name = dump.program.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let pid = dump.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    if name.is_empty() { String::new() } else { format!("{name}{pid}") }
}

/// Returns the differences of two snapshots, the second minus the first, as JSON.
pub(crate) fn difference(first: &PageSnapshot, second: &PageSnapshot) -> Result<Vec<u8>, Failure> {
    let sides = [first, second]
        .map(|snapshot| NamedBytes { name: &snapshot.name, bytes: &snapshot.report });
    let mut both = Checked::default();
    let compared = open::open_two_bytes(sides, first.options)?.compare_into(&mut both)?;
    both.report_tree.total()?;
    let Compared { writer, knows_usable_size } = compared;
    Ok(both.reports.finish(writer.as_deref(), knows_usable_size))
}

/// A collector of reports for a page that refuses the same reports as the command line.
#[derive(Default)]
struct Checked {
    reports: Reports,
    report_tree: ReportTree,
}

impl Sink for Checked {
    fn restart(&mut self) {
        self.reports.restart();
        self.report_tree.clear();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.report_tree.add(entry)?;
        self.reports.report(entry)
    }
}

/// Returns the figures of resident memory; `None` if the report has none.
fn resident_of(report: &[u8], options: Options) -> Option<ProcessSnapshot> {
    let mut snapshots = ProcessSnapshots::default();
    let header = read::read(&mut &*report, options, &mut snapshots).ok()?;
    let snapshot = snapshots.choose(None, &header)?;
    snapshot.figure("resident").is_some().then_some(snapshot)
}

/// The child of `explicit` in reports that miss reporters.
const OR_MISSED: &str = "heap-unclassified-or-missed";

/// Returns the sums for the chart.
fn figures_of(process: &ProcessPage<'_>) -> Value {
    let flat = |name: &str| {
        let found = process.flats.iter().find(|flat| flat.root().name == name);
        found.map(|flat| flat.root().amount.number())
    };
    let unclassified = |tree: &Tree| {
        let children = || tree.root().children.iter().map(|&child| &tree.items[child]);
        // Of an incomplete snapshot, the number is not known.
        let is_incomplete = children().any(|child| child.name == OR_MISSED);
        let mut named = children().filter(|child| child.name == "heap-unclassified");
        named.next().filter(|_| !is_incomplete).map(|child| child.amount.number())
    };
    let explicit = process.explicit.as_ref();
    json!({
        "resident": flat("resident"), "heap-allocated": flat("heap-allocated"),
        "explicit": explicit.map(|tree| tree.root().amount.number()),
        "heap-unclassified": explicit.and_then(unclassified),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_list_of_reports_counts() {
        let report = |path| {
            format!(
                r#"{{"process":"p","path":"{path}","kind":2,"units":0,"amount":7,"description":"d"}}"#
            )
        };
        let text = format!(
            r#"{{"version":1,"hasMozMallocUsableSize":true,"reports":[{}],"reports":[{}]}}"#,
            report("first"),
            report("last")
        );
        let mut both = Checked::default();
        read::read(&mut text.as_bytes(), Options::default(), &mut both).unwrap();
        let written = String::from_utf8(both.reports.finish(None, true)).unwrap();
        assert!(written.contains("last") && !written.contains("first"), "{written}");
    }
}

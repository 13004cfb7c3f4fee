//! `about-memory page build FILE… -o PAGE`: writes one page that shows reports in any browser,
//! offline.

use super::findings::{self, Piece};
use super::program::Program;
use super::recording::PageRecording;
use super::snapshot::{PageSnapshot, difference};
use super::source::{Measured, Source};
use crate::command::flags::{Output, refuse_input};
use crate::context::Context;
use crate::error::Failure;
use crate::input::kind::FileKind;
use crate::input::live::Target;
use crate::input::{InputArgs, open};
use crate::render::page::document::Document;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// `about-memory page build`
#[derive(Debug, Args)]
pub struct PageBuildArgs {
    /// The page to write; it needs no other file and no network
    #[arg(short, long, value_name = "PAGE")]
    pub output: PathBuf,
    /// The files and programs of the page.
    #[command(flatten)]
    pub contents: PageContents,
}

/// The files and programs that a page shows.
#[derive(Debug, Args)]
pub struct PageContents {
    /// Memory reports, the oldest first, dumps, recordings, and pids of running programs to
    /// measure; a DMD dump beside a report is shown with it
    #[arg(required = true, value_name = "FILE|PID")]
    pub files: Vec<PathBuf>,
    /// Leave private words out of the reports of running programs: those that their reporters
    /// replace on request, and names of mapped files. Files must be anonymized already
    #[arg(long)]
    pub anonymize: bool,
    /// Flags of the reader of reports.
    #[command(flatten)]
    pub input: InputArgs,
}

impl PageBuildArgs {
    /// Writes the page.
    ///
    /// # Errors
    /// A file cannot be shown, or the page cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        refuse_input(&self.output, &self.contents.files)?;
        let document = self.contents.document(&mut context.notes)?;
        write(&document, &self.output)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a page to a file.
pub(super) fn write(document: &Document, path: &Path) -> Result<(), Failure> {
    let written = Output::create(path).and_then(|mut file| {
        document.write(&mut file)?;
        file.keep()
    });
    Ok(written.map_err(|error| format!("{}: cannot be written: {error}", path.display()))?)
}

impl PageContents {
    /// Makes the page. One of dumps alone opens on the flame graph of the heap.
    pub(super) fn document(&self, notes: &mut dyn Write) -> Result<Document, Failure> {
        let mut snapshots = Vec::new();
        let mut recordings = Vec::new();
        for path in &self.files {
            match PageRecording::is_at(path) {
                true if self.anonymize => return Err(private(path).into()),
                true => recordings.push(PageRecording::of_file(path, notes)?),
                false => snapshots.push(self.snapshot(path)?),
            }
        }
        let mut document = embed_all(&snapshots, &recordings, notes)?;
        if self.files.iter().all(|path| FileKind::of(path) == Some(FileKind::Dump)) {
            document.open_on(&json!({ "view": "heap", "as": "flame" }));
        }
        Ok(document)
    }

    /// Reads a file, or measures a running program.
    fn snapshot(&self, path: &Path) -> Result<PageSnapshot, Failure> {
        let snapshot = match open::running(path) {
            Some(target) => measure(&target, self)?,
            None => PageSnapshot::of_report_or_dump(path, self.input.options())?,
        };
        if self.anonymize && !snapshot.is_anonymized() {
            return Err(format!(
                "{}: this report has private words, which only the program's reporters can tell; \
                 take it with `snapshot --anonymize` or `run --anonymize`",
                path.display()
            )
            .into());
        }
        Ok(snapshot)
    }
}

/// Returns the message for a recording, whose functions may be private.
fn private(path: &Path) -> String {
    format!("{}: a recording cannot be anonymized; leave it out", path.display())
}

/// Measures a running program, with a dump if DMD is on.
fn measure(target: &Target, args: &PageContents) -> Result<PageSnapshot, Failure> {
    let program = Program::new(target, args.anonymize)?;
    let Measured { report, dump } = program.measure(true)?;
    let snapshot = PageSnapshot::of_bytes(program.name(), report, args.input.options())?;
    Ok(snapshot.taken(SystemTime::now(), dump))
}

/// Makes a page of snapshots, their findings and differences, and of recordings.
fn embed_all(
    snapshots: &[PageSnapshot],
    recordings: &[PageRecording],
    notes: &mut dyn Write,
) -> Result<Document, Failure> {
    let summaries: Vec<_> = snapshots.iter().map(PageSnapshot::summary).collect();
    let of_recordings: Vec<_> = recordings.iter().map(PageRecording::summary).collect();
    let mut document = Document::offline(&summaries, &of_recordings);
    for (index, recording) in recordings.iter().enumerate() {
        document.embed(format!("recordings/{index}"), &recording.json)?;
    }
    let all: Vec<&PageSnapshot> = snapshots.iter().collect();
    for (index, snapshot) in snapshots.iter().enumerate() {
        document.embed(format!("moments/{index}/reports"), &snapshot.reports()?)?;
        if let Some(found) = findings::find(&all, index) {
            for note in &found.notes {
                writeln!(notes, "about-memory: {note}")?;
            }
            for Piece { name, json } in &found.pieces {
                document.embed(format!("moments/{index}/{name}"), json)?;
            }
        }
    }
    let has_reports = |&(first, second): &(usize, usize)| {
        snapshots[first].has_reports() && snapshots[second].has_reports()
    };
    for (first, second) in pairs(snapshots.len()).into_iter().filter(has_reports) {
        match difference(&snapshots[first], &snapshots[second]) {
            Ok(json) => document.embed(format!("differences/{first}/{second}"), &json)?,
            // The page still shows the trees of both.
            Err(error) => writeln!(
                notes,
                "about-memory: {} and {} are not compared: {}",
                snapshots[first].name,
                snapshots[second].name,
                error.with_causes()
            )?,
        }
    }
    Ok(document)
}

/// The largest number of snapshots of which the page has all differences.
const ALL_PAIRS: usize = 6;

/// Returns the pairs of snapshots to compare: all pairs of a few; of many, neighbours, and the
/// first with the last.
fn pairs(count: usize) -> Vec<(usize, usize)> {
    let all = (0..count).flat_map(|first| (first + 1..count).map(move |second| (first, second)));
    all.filter(|&(first, second)| {
        count <= ALL_PAIRS || second == first + 1 || (first == 0 && second + 1 == count)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_moments_neighbours_are_compared() {
        assert_eq!(pairs(1), []);
        assert_eq!(pairs(3), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(pairs(6).len(), 15);
        assert_eq!(pairs(8).len(), 8);
    }
}

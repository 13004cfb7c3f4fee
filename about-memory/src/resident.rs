//! `about-memory resident FILE…`: what resident memory is, from the system's figures down to reports, and why it grew.

mod account;
mod html;
mod moment;
mod text;
mod verdict;

pub use account::{Line, Sum, sums};
pub use html::write as write_html;
pub use moment::{Blocks, Moment, Moments};
pub use text::write as write_text;
pub use verdict::{Cause, Verdict, of as verdict};

use crate::cli::InputArgs;
use crate::open;
use crate::show::Failure;
use clap::Args;
use memreport_analysis::read as dump;
use memreport_analysis::read::Mode;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// `about-memory resident`
#[derive(Debug, Args)]
pub struct ResidentArgs {
    /// Memory reports of one process, one or several, in any order; or a directory of them, or the number of a running process
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Explain the process with NAME in its name [default: the one that wrote the file]
    #[arg(long, value_name = "NAME")]
    process: Option<String>,

    /// Write the page as a fragment of HTML
    #[arg(long)]
    html: bool,

    /// How files are read.
    #[command(flatten)]
    input: InputArgs,
}

/// The whole page, as a value.
#[derive(Clone, Debug)]
pub struct Page {
    /// The process.
    pub process: String,
    /// How many snapshots there are, and how many milliseconds lie between the first and the last, where known.
    pub snapshots: (usize, Option<u64>),
    /// The sums of the last snapshot, each line with what it grew by since the first, if there are two.
    pub sums: Vec<Compared>,
    /// What is to be concluded.
    pub verdict: Verdict,
    /// What makes the figures doubtful, as sentences.
    pub notes: Vec<String>,
}

/// A sum of the last moment beside that of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// In which way the whole is divided, as `by use`.
    pub by: &'static str,
    /// What is divided, and by how much it grew.
    pub whole: (Line, Option<i64>),
    /// The parts, which add up to it, as do their growths.
    pub parts: Vec<(Line, Option<i64>)>,
}

impl Page {
    /// Explains the moments of one process; they are put in the order of time.
    ///
    /// # Panics
    /// Where there is none.
    pub fn new(mut moments: Vec<Moment>) -> Self {
        if moments.iter().all(|moment| moment.time_ms.is_some()) {
            moments.sort_by_key(|moment| moment.time_ms);
        }
        let verdict = verdict(&moments);
        let (first, last) = (&moments[0], &moments[moments.len() - 1]);
        let before = (moments.len() > 1).then(|| sums(first));
        let compared = sums(last).into_iter().map(|sum| {
            let is_same =
                |before: &&Sum| (&before.whole.name, before.by) == (&sum.whole.name, sum.by);
            let same = before.as_deref().and_then(|before| before.iter().find(is_same));
            Compared::new(sum, same)
        });
        let span =
            last.time_ms.zip(first.time_ms).and_then(|(last, first)| last.checked_sub(first));
        Page {
            process: last.process.clone(),
            snapshots: (moments.len(), span.filter(|_| moments.len() > 1)),
            sums: compared.collect(),
            verdict,
            notes: notes(&moments),
        }
    }
}

impl Compared {
    /// Of what the first moment says nothing, nobody knows what it grew by.
    fn new(now: Sum, before: Option<&Sum>) -> Self {
        let Some(before) = before else {
            let alone = |line| (line, None);
            return Compared {
                by: now.by,
                whole: alone(now.whole),
                parts: now.parts.into_iter().map(alone).collect(),
            };
        };
        let old = &before.parts;
        let was =
            |name: &str| old.iter().find(|line| line.name == name).map_or(0, |line| line.bytes);
        let gone = old.iter().filter(|line| now.parts.iter().all(|new| new.name != line.name));
        let gone: Vec<_> = gone.map(|line| Line { bytes: 0, ..line.clone() }).collect();
        let grown = |line: Line| {
            let growth = line.bytes - was(&line.name);
            (line, Some(growth))
        };
        let growth = now.whole.bytes - before.whole.bytes;
        let mut parts: Vec<_> = now.parts.into_iter().chain(gone).map(grown).collect();
        // What is left comes last, also where only one of the two moments has it.
        parts.sort_by_key(|(line, _)| line.name == account::REST);
        Compared { by: now.by, whole: (now.whole, Some(growth)), parts }
    }
}

fn notes(moments: &[Moment]) -> Vec<String> {
    let mut notes = Vec::new();
    if moments.windows(2).any(|pair| !pair[0].is_of_same_process(&pair[1])) {
        notes.push(
            "the files are of different processes, or of one that was started again".to_owned(),
        );
    }
    if moments.iter().any(|moment| !moment.has("rss")) {
        notes.push(
            "not all files say how resident memory is mapped, so it is not explained".to_owned(),
        );
    }
    if moments.iter().any(|moment| !moment.has("heap-committed")) {
        notes.push("not all files say what the allocator has committed".to_owned());
    }
    if let Some(over) = moments.last().map(account::dark).filter(|dark| *dark < 0) {
        notes
            .push(format!("{} bytes more are reported than are allocated: a double report", -over));
    }
    notes
}

/// Runs the subcommand; remarks go to `err`.
///
/// # Errors
/// A file cannot be read, or has no process of that name.
pub fn main(args: &ResidentArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    let mut moments = Vec::new();
    for file in files(&args.files)? {
        moments.push(read(&file, args, err)?);
    }
    let page = Page::new(moments);
    if args.html {
        html::write(&page, out)?;
    } else {
        text::write(&page, columns(), out)?;
    }
    Ok(())
}

/// The files, and those in directories, but for dumps and what is not finished.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut found: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_report = name.ends_with(".json") || name.ends_with(".json.gz");
            is_report && !name.contains(".dmd.json") && !name.starts_with("incomplete-")
        });
        if found.is_empty() {
            return Err(format!("{}: no memory report is in it", path.display()).into());
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

fn read(path: &Path, args: &ResidentArgs, err: &mut dyn Write) -> Result<Moment, Failure> {
    let mut moments = Moments::default();
    let header = open::read(path, args.input.options(), &mut moments)?;
    let wanted = args.process.as_deref();
    let mut moment = moments.choose(wanted, &header).ok_or_else(|| match wanted {
        Some(name) => format!("{}: no process is called `{name}`", path.display()),
        None => format!("{}: it has no reports of any process", path.display()),
    })?;
    if let Some(beside) = beside(path).filter(|path| path.exists()) {
        match dump::read_file(&beside) {
            Ok(dump) => moment.blocks = blocks(&dump),
            // The dump only adds to the answer.
            Err(error) => writeln!(err, "note: {}: {error}", beside.display())?,
        }
    }
    Ok(moment)
}

/// The dump of a report: `heap.json.gz` has a `heap.dmd.json.gz`.
fn beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (stem, ending) = name.split_at(name.find(".json")?);
    Some(path.with_file_name(format!("{stem}.dmd{ending}")))
}

/// What the blocks of a dump add up to; nothing of a sample, or where the dump does not say who reports what.
pub(crate) fn blocks(dump: &dump::Dump) -> Option<Blocks> {
    let extension = dump.extension.as_ref();
    let says_who_reports = match dump.invocation.mode {
        Mode::DarkMatter => true,
        // Mozilla's scans do not say it.
        Mode::Scan => extension.is_some(),
        _ => false,
    };
    if !says_who_reports || extension.is_some_and(|extension| extension.sampled.is_some()) {
        return None;
    }
    let mut sums = Blocks::default();
    for block in dump.blocks.iter().filter(|block| !block.freed) {
        let bytes = |bytes: u64| i64::try_from(bytes.saturating_mul(block.num)).unwrap_or(i64::MAX);
        let is_reported = dump.reports(block).is_some_and(|reports| !reports.is_empty());
        let (asked, slop) = if is_reported {
            (&mut sums.reported, &mut sums.reported_slop)
        } else {
            (&mut sums.dark, &mut sums.dark_slop)
        };
        *asked = asked.saturating_add(bytes(block.req));
        *slop = slop.saturating_add(bytes(block.slop));
    }
    Some(sums)
}

/// The columns of the terminal, where there is one.
fn columns() -> usize {
    const COLUMNS: usize = 100;

    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
    size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_added_up_where_the_dump_says_who_reports_them() {
        let sums = |mode: &str| {
            let text = format!(
                r##"{{"version": 5, "invocation": {{"dmdEnvVar": null, "mode": "{mode}"}},
                "blockList": [{{"req": 100, "slop": 12, "alloc": "A"}}, {{"req": 60, "slop": 4, "alloc": "A", "num": 2}}],
                "traceTable": {{"A": ["B"]}}, "frameTable": {{"B": "#00: main (main.rs:1)"}}}}"##
            );
            blocks(&dump::read_slice(text.as_bytes()).unwrap())
        };
        let dark = Blocks { dark: 220, dark_slop: 20, ..Blocks::default() };
        assert_eq!(sums("dark-matter"), Some(dark));
        for silent in ["live", "cumulative", "scan"] {
            assert_eq!(sums(silent), None, "{silent}");
        }
    }
}

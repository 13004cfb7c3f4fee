//! `about-memory census DUMP|PID`: the heap counted by what is asked, one question within the other.

mod leaves;
mod tree;
mod table;
mod csv;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use memreport_analysis::census::{Breakdown, Census, FileOptions, of_dump};
use memreport_analysis::heap::Frames;
use memreport_analysis::read::Dump;

use crate::dmd::DmdError;
use crate::live;
use crate::open::running;
use crate::ps::seconds;
use crate::show::Failure;
use crate::symbolised::Reader;

/// `about-memory census`
#[derive(Debug, Args)]
pub struct CensusArgs {
    /// A dump that DMD wrote, ours or Firefox's; `-` for standard input; or the number of a running program
    #[arg(value_name = "DUMP|PID")]
    first: PathBuf,

    /// A later one: show what it has beyond the first
    #[arg(value_name = "DUMP2|PID")]
    second: Option<PathBuf>,

    /// What to count by, each within the one before: reporter, type, stack, state, file, field, thread, scope, crate, size or age;
    /// `stack:3` is three frames of a stack, `reporter:2` two segments of a path [default: state, and within it what tells most]
    #[arg(long, value_name = "WORD,…", conflicts_with = "breakdown")]
    by: Option<String>,

    /// The same in JSON, in the words of SpiderMonkey's takeCensus; `@FILE` reads it from a file
    #[arg(long, value_name = "JSON|@FILE")]
    breakdown: Option<String>,

    /// How many groups to show of each, or rows of a table; the others are one line [default: 10; with --csv and --json all]
    #[arg(long, value_name = "N", conflicts_with = "json")]
    top: Option<usize>,

    /// How to print it: a tree, a table, CSV, or JSON as SpiderMonkey answers
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    format: Format,

    /// The same as --format json
    #[arg(long, conflicts_with_all = ["csv", "format"])]
    json: bool,

    /// The same as --format csv
    #[arg(long, conflicts_with = "format")]
    csv: bool,

    /// Show the frames of the standard library too
    #[arg(long)]
    all_frames: bool,

    /// How many seconds a running program may take to answer
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    patience: Duration,

    /// Look for the program's files, debug files, `.build-id` directories and Breakpad's symbol files here first; repeat for several
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
}

/// How a census is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A tree
    #[default]
    Tree,
    /// A row for each group that is not told apart further
    Table,
    /// The same for programs
    Csv,
    /// As SpiderMonkey answers
    Json,
}

/// What a census is of, and how much of it is shown.
#[derive(Debug)]
struct Shown<'c> {
    census: &'c Census,
    /// Whose heap it is.
    of: String,
    top: usize,
    /// Columns of a line; as many as there are if nobody says.
    columns: usize,
}

/// Runs the subcommand; remarks go to `err`.
///
/// # Errors
///
/// Breakdowns that make no sense, dumps that cannot be read, programs that cannot be asked.
pub fn main(args: &CensusArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    // First: a program need not be asked for what makes no sense.
    let breakdown = breakdown(args)?;
    let mut options = FileOptions::default();
    options.frames = if args.all_frames { Frames::All } else { Frames::Own };
    options.root =
        std::env::current_dir().ok().map(|directory| directory.to_string_lossy().into_owned());
    let mut reader = Reader::new(&args.symbols);
    let mut take = |path: &Path| -> Result<(Dump, Census), Failure> {
        let dump = read(path, args.patience, &mut reader, err)?;
        let census = of_dump(&dump, &breakdown, &options);
        Ok((dump, census))
    };
    let (dump, mut census) = take(&args.first)?;
    let mut of = program(&dump);
    if let Some(second) = &args.second {
        let (later, after) = take(second)?;
        if later.invocation.mode != dump.invocation.mode {
            return Err(DmdError::Modes(memreport_analysis::analysis::DifferentModes).into());
        }
        census = after.since(&census)?;
        of = program(&later);
    }
    let format = match (args.json, args.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => args.format,
    };
    let top = args.top.unwrap_or(if format == Format::Csv { usize::MAX } else { 10 });
    let shown = Shown { census: &census, of, top, columns: columns() };
    Ok(match format {
        Format::Tree => tree::write(&shown, out),
        Format::Table => table::write(&shown, out),
        Format::Csv => csv::write(&shown, out),
        Format::Json => census.write_json(out),
    }?)
}

fn breakdown(args: &CensusArgs) -> Result<Breakdown, Failure> {
    if let Some(words) = &args.by {
        return Breakdown::of_words(words).map_err(|error| format!("--by: {error}").into());
    }
    let Some(given) = &args.breakdown else { return Ok(Breakdown::usual()) };
    let parse = |text: &str, of: &str| {
        text.parse().map_err(|error: memreport_analysis::census::BreakdownError| {
            format!("{of}: {error}").into()
        })
    };
    match given.strip_prefix('@') {
        None => parse(given, "--breakdown"),
        Some(file) => {
            let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
            parse(&text, file)
        }
    }
}

fn read(
    path: &Path,
    patience: Duration,
    reader: &mut Reader,
    err: &mut dyn Write,
) -> Result<Dump, Failure> {
    let Some(target) = running(path) else { return Ok(reader.read(path, err)?) };
    let report = live::choose(&target, patience)?.report(true)?;
    let dump = report.dump.ok_or("the program sent no dump: is it of another version?")?;
    Ok(reader.read_bytes((path, &dump), err)?)
}

/// How the program of a dump is called.
fn program(dump: &Dump) -> String {
    let ours = dump.extension.as_ref();
    let name = ours.and_then(|ours| ours.program.as_deref()?.rsplit('/').next());
    match (name, ours.and_then(|ours| ours.pid)) {
        (Some(name), Some(pid)) => format!("{name} (pid {pid})"),
        (Some(name), None) => name.to_owned(),
        (None, _) => "the program".to_owned(),
    }
}

/// The columns of the terminal, where there is one.
fn columns() -> usize {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
    columns.unwrap_or(usize::MAX)
}

impl Shown<'_> {
    /// What all of it is, in a sentence.
    fn head(&self) -> String {
        let Shown { census, of, .. } = self;
        let amount = census.root().amount;
        let [bytes, count] = [amount.bytes, amount.count].map(|number| self.number(number));
        let blocks = if amount.count.abs() == 1 { "block" } else { "blocks" };
        let sample = if census.is_sampled() { "about " } else { "" };
        let growth = if census.is_difference() { " since the first" } else { "" };
        format!("{of}: {sample}{bytes} bytes in {count} {blocks}{growth}")
    }

    /// With a sign, if it is of a difference.
    fn number(&self, number: i64) -> String {
        let plus = if self.census.is_difference() && number > 0 { "+" } else { "" };
        format!("{plus}{}", memreport_analysis::analysis::commas(number.into()))
    }

    /// A share of the whole; a difference has none.
    fn share(&self, bytes: i64) -> Option<String> {
        let all = self.census.root().amount.bytes;
        let share =
            || format!("{:.2}%", memreport_analysis::analysis::percent(bytes.into(), all.into()));
        (!self.census.is_difference()).then(share)
    }
}

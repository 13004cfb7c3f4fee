//! `about-memory heap census DUMP|PID`: counts the blocks of a heap in nested groups.

use crate::command::flags::{by, candidates, seconds};
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpArgs, DumpError, DumpReader};
use crate::input::open::{NamedBytes, running};
use crate::input::{folder, live};
use crate::render::census::{Shown, csv, table, tree};
use clap::{Args, ValueEnum};
use memreport_analysis::analysis::DifferentModes;
use memreport_analysis::census::{
    Breakdown, BreakdownError, Census, FileOptions, ReachableCensus, of_dump, of_reachable,
};
use memreport_analysis::heap::Frames;
use memreport_analysis::read::Dump;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The help of `--by` before the list of axes.
const PURPOSE: &str = "Group the blocks by these axes, one within the other: `type,stack:3` [default: state, then type or reporter]";

/// `about-memory heap census`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct CensusArgs {
    /// A dump by DMD, memreport's or Firefox's; `-` is standard input; or the pid of a running
    /// program
    #[arg(value_name = "DUMP|PID|NAME", add = candidates::programs_and_files())]
    first: PathBuf,

    /// A later dump or program: print the difference
    #[arg(value_name = "DUMP2|PID|NAME", add = candidates::programs_and_files())]
    second: Option<PathBuf>,

    /// Group the blocks by these axes, one within the other: `type,stack:3`
    /// [default: state, then type or reporter]
    #[arg(long, value_name = "AXIS,…", conflicts_with = "breakdown", long_help = by::any_axis(PURPOSE))]
    by: Option<String>,

    /// A breakdown in JSON, in the format of SpiderMonkey's takeCensus; `@FILE` reads it from a
    /// file
    #[arg(long, value_name = "JSON|@FILE")]
    breakdown: Option<String>,

    /// Count only blocks that a static, a stack, a reporter or a skipped field reaches; for scans
    /// (`DMD=--mode=scan`)
    ///
    /// Leaked blocks are left out, as are those that only registers or the stacks of threads that
    /// ran hold: a scan does not tell them apart.
    #[arg(long)]
    reachable: bool,

    /// Show N groups of each, or rows of a table; the others are one line [default: 10; with --csv
    /// and --json all]
    #[arg(long, value_name = "N", conflicts_with = "json")]
    top: Option<usize>,

    /// The output format
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    format: Format,

    /// Short for --format json
    #[arg(long, conflicts_with_all = ["csv", "format"])]
    json: bool,

    /// Short for --format csv
    #[arg(long, conflicts_with = "format")]
    csv: bool,

    /// Show the frames of the standard library too
    #[arg(long)]
    all_frames: bool,

    /// Wait at most this long for a running program
    #[arg(long, alias = "patience", value_name = "TIME", default_value = "30", value_parser = seconds)]
    timeout: Duration,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

/// The output format of a census.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A tree
    #[default]
    Tree,
    /// A table: a row for each innermost group
    Table,
    /// Comma-separated values: the rows of the table
    Csv,
    /// JSON as SpiderMonkey's takeCensus returns
    Json,
}

impl CensusArgs {
    /// Prints the census.
    ///
    /// # Errors
    /// The breakdown is invalid, a dump cannot be read, a program does not answer, or the answer
    /// cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        // Check the breakdown before asking a program.
        let breakdown = self.breakdown()?;
        let mut options = FileOptions::default();
        options.frames = if self.all_frames { Frames::All } else { Frames::Own };
        options.root = folder::working_directory();
        let mut reader = self.dump.reader();
        let mut take = |path: &Path| -> Result<(Dump, Census), Failure> {
            let dump = self.read(path, &mut reader, &mut context.notes)?;
            let census = if self.reachable {
                let ReachableCensus { census, unreachable, .. } =
                    of_reachable(&dump, &breakdown, &options)
                        .map_err(|error| format!("{}: {error}", path.display()))?;
                writeln!(
                    context.notes,
                    "note: {}: left out are {} bytes in {} blocks that only stacks or libraries hold, or nothing",
                    path.display(),
                    unreachable.bytes,
                    unreachable.blocks
                )?;
                census
            } else {
                of_dump(&dump, &breakdown, &options)
            };
            Ok((dump, census))
        };
        let (dump, mut census) = take(&self.first)?;
        let mut of = program(&dump);
        if let Some(second) = &self.second {
            let (later, after) = take(second)?;
            if later.invocation.mode != dump.invocation.mode {
                return Err(DumpError::Modes(DifferentModes).into());
            }
            census = after.since(&census)?;
            of = program(&later);
        }
        let format = match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => self.format,
        };
        let top = self.top.unwrap_or(if format == Format::Csv { usize::MAX } else { 10 });
        let columns = context.columns().unwrap_or(usize::MAX);
        let shown = Shown { census: &census, of, top, columns };
        match format {
            Format::Tree => tree::write(&shown, &mut context.out),
            Format::Table => table::write(&shown, &mut context.out),
            Format::Csv => csv::write(&shown, &mut context.out.machine_bytes()),
            Format::Json => census.write_json(&mut context.out.json()),
        }?;
        Ok(ExitCode::SUCCESS)
    }

    fn breakdown(&self) -> Result<Breakdown, Failure> {
        if let Some(words) = &self.by {
            return Breakdown::of_words(words).map_err(|error| format!("--by: {error}").into());
        }
        let Some(given) = &self.breakdown else { return Ok(Breakdown::usual()) };
        let parse = |text: &str, of: &str| {
            text.parse().map_err(|error: BreakdownError| format!("{of}: {error}").into())
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
        &self,
        path: &Path,
        reader: &mut DumpReader,
        notes: &mut dyn Write,
    ) -> Result<Dump, Failure> {
        let Some(target) = running(path) else { return Ok(reader.read(path, notes)?) };
        let report = live::choose(&target, self.timeout)?.report(true)?;
        let bytes = report.dump.ok_or("the program sent no dump: is it of another version?")?;
        let name = path.to_string_lossy();
        Ok(reader.read_bytes(NamedBytes { name: &name, bytes: &bytes }, notes)?)
    }
}

/// Returns the name of a dump's program.
fn program(dump: &Dump) -> String {
    let ours = dump.extension.as_ref();
    let name = ours.and_then(|ours| ours.program.as_deref()?.rsplit('/').next());
    match (name, ours.and_then(|ours| ours.pid)) {
        (Some(name), Some(pid)) => format!("{name} (pid {pid})"),
        (Some(name), None) => name.to_owned(),
        (None, _) => "the program".to_owned(),
    }
}

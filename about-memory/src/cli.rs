//! The command line: what can be asked for.

use crate::ask::{AskArgs, MinimizeArgs, TrackArgs};
use crate::census::CensusArgs;
use crate::coverage::CoverageArgs;
use crate::dmd::DmdArgs;
use crate::export::ExportArgs;
use crate::heap::{HeapArgs, HeapDiffArgs};
use crate::held::HeldArgs;
use crate::html::HtmlArgs;
use crate::metrics::MetricsArgs;
use crate::numbers::Bytes;
use crate::ps::PsArgs;
use crate::record::{RecordArgs, RecordingArgs};
use crate::resident::ResidentArgs;
use crate::retained::RetainedArgs;
use crate::run::RunArgs;
use crate::serve::ServeArgs;
use crate::snapshot::SnapshotArgs;
use crate::symbolicate::SymbolicateArgs;
use crate::tree::{Least, Settings};
use crate::watch::WatchArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use memreport::snapshot::read::Options;
use std::path::PathBuf;

/// Shows where the memory of programs is: reads memory reports (of Firefox, or of programs that use memreport) and prints
/// them as trees, exactly as Firefox's page about:memory does.
///
/// Values are MB; a node's share is that of its tree. `++` stands for a node whose kids are too small to show (`(7 tiny)`),
/// `--` for one whose kids follow, `──` for a measurement. `[2]` says that two reports were added up, `[?!]` that a value
/// is negative or too large.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Cli {
    /// What to do, if not to show a report.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What to show.
    #[command(flatten)]
    pub show: ShowArgs,
}

/// What can be done beside showing a report.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program, and show where its memory is, what nobody reports, and what is reported twice or wrongly
    Run(RunArgs),
    /// Record what a program allocates and gives back over time
    Record(RecordArgs),
    /// Show what a recording comes to: sums, the peak, what was kept, what came and went
    Recording(RecordingArgs),
    /// Show the records of a DMD dump, or of what differs between two, as Mozilla's dmd.py does
    Dmd(DmdArgs),
    /// Show how much of the heap is reported exactly once, by crate, type and field, and what would help most
    Coverage(CoverageArgs),
    /// Explain what the resident memory of a process is, and, from several reports, why it grew
    Resident(ResidentArgs),
    /// Print a report as metrics in the text of OpenMetrics, as Prometheus reads it
    Metrics(MetricsArgs),
    /// Give the frames of a DMD dump their functions and lines, for good, so that it can be read elsewhere
    Symbolicate(SymbolicateArgs),
    /// Write a DMD dump or a recording as the file of another viewer: pprof, DHAT, flame graphs, speedscope, the Firefox Profiler and others
    Export(ExportArgs),
    /// Break a DMD dump, or a moment of a recording, down by stack and by type, one within the other
    Heap(HeapArgs),
    /// Show what grew between two DMD dumps, or two moments of recordings, by stack and type, biggest first
    HeapDiff(HeapDiffArgs),
    /// Count the heap of a DMD dump or of a running program by what you ask, one question within the other; of two, what grew
    Census(CensusArgs),
    /// Show what keeps most of the heap alive, in a scan dump, and the cycles that nothing outside points at
    Retained(RetainedArgs),
    /// Show by which ways blocks are held, in a scan dump, from statics and stacks through named types and fields
    Held(HeldArgs),
    /// Show what differs between two reports, the second minus the first
    Diff(DiffArgs),
    /// Write one page that shows reports in any browser, offline: trees, treemap, differences, dark matter
    Html(HtmlArgs),
    /// Serve the same page on this machine, and measure running programs from it
    Serve(ServeArgs),
    /// Compare a report with the ceilings of a budget; exit status 1 if anything is over
    Check(CheckArgs),
    /// List the running programs that can be asked, with their memory and what they track
    Ps(PsArgs),
    /// Watch the tree of a running program: fold, filter, sort, and compare with a moment that you mark
    Live(WatchArgs),
    /// Save what running programs report at this moment, and DMD's dump of it
    Snapshot(SnapshotArgs),
    /// Have a running program give up what it can do without, its caches first
    Minimize(MinimizeArgs),
    /// Have DMD track in a running program from now on, otherwise than before, or no longer
    Track(TrackArgs),
    /// Ask a running program anything it knows an answer to
    Ask(AskArgs),
}

/// `about-memory FILE…`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Memory reports, plain or gzipped, or running programs by number; `-` is standard input. Several are shown as one report
    /// of all their processes
    #[arg(required = true, value_name = "FILE|PID")]
    pub files: Vec<PathBuf>,
    /// How it is shown.
    #[command(flatten)]
    pub display: DisplayArgs,
    /// How files are read.
    #[command(flatten)]
    pub input: InputArgs,
}

/// `about-memory diff A B`
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The report from before; a running program by number, with `--since`
    #[arg(value_name = "A|PID")]
    pub first: PathBuf,
    /// The report from after; a running program by number, if it is to be compared as it is now
    #[arg(value_name = "B|PID", required_unless_present = "since")]
    pub second: Option<PathBuf>,
    /// Show how the one report, or the running program, differs from this report
    #[arg(long, value_name = "FILE", conflicts_with = "second")]
    pub since: Option<PathBuf>,
    /// Print a Markdown table of what changed most, fit for a pull request
    #[arg(long, conflicts_with_all = ["json", "descriptions", "color"])]
    pub markdown: bool,
    /// How it is shown.
    #[command(flatten)]
    pub display: DisplayArgs,
    /// How files are read.
    #[command(flatten)]
    pub input: InputArgs,
}

/// `about-memory check FILE --budget BUDGET`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The report to check; `-` is standard input
    pub file: PathBuf,
    /// The budget, a TOML file: `[ceilings]` with lines like `"explicit/*/strings" = "5%"` or `= "64MB"`
    #[arg(long, value_name = "BUDGET")]
    pub budget: PathBuf,
    /// Raise or lower every ceiling of the budget to what this report has, and keep the rest of the file as it is
    #[arg(long)]
    pub bless: bool,
    /// How files are read.
    #[command(flatten)]
    pub input: InputArgs,
}

/// How a report is shown.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct DisplayArgs {
    /// Show everything, and in bytes
    #[arg(short, long)]
    pub verbose: bool,
    /// Only reports with TEXT in their path; in it, the slashes of URLs are written as backslashes
    #[arg(
        short,
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub filter: String,
    /// Take the filter for a regular expression of JavaScript's
    #[arg(long, requires = "filter")]
    pub regex: bool,
    /// Only processes with NAME in their name
    #[arg(long, value_name = "NAME")]
    pub process: Option<String>,
    /// Show N levels of each tree; a root is the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Gather what is smaller: so many bytes (`64K`, `1.5MB`) or so much of its tree (`0.1%`) [Firefox: 1%]
    #[arg(long, value_name = "SIZE|PERCENT", value_parser = parse_least)]
    pub min: Option<Least>,
    /// Sort the nodes of trees
    #[arg(long, value_enum, default_value_t = Sort::Amount)]
    pub sort: Sort,
    /// Print bytes in this unit [default: mb; with --verbose: bytes]
    #[arg(long, value_enum)]
    pub units: Option<UnitArg>,
    /// Use colours; alone, where the output is a terminal
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "never", default_missing_value = "auto")]
    pub color: Color,
    /// Print the trees as JSON, for scripts: all nodes, amounts as numbers
    #[arg(long, conflicts_with = "descriptions")]
    pub json: bool,
    /// Print each path with what its report says of itself
    #[arg(long)]
    pub descriptions: bool,
    /// Print notes about the collection after the report, and not on standard error
    #[arg(long)]
    pub notes: bool,
}

/// How files are read.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Refuse files of more text than this, after unzipping
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = parse_size)]
    pub max_size: u64,
    /// Take gzipped text for UTF-8. Firefox takes it for Latin-1 (`Ã©` for `é`), and so does this program without it
    #[arg(long)]
    pub utf8: bool,
}

/// What the nodes of a tree are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By name
    Name,
    /// By amount, then by name
    Amount,
}

/// In which unit bytes are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitArg {
    /// In the unit that fits each best: B, KB, MB or GB
    Auto,
    /// In MB
    Mb,
    /// In bytes
    Bytes,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Where the output is a terminal, and `NO_COLOR` is not set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl DisplayArgs {
    /// What of it concerns the trees.
    pub fn settings(&self) -> Settings {
        Settings {
            is_verbose: self.verbose,
            is_diff: false,
            bytes: self.units.map(|unit| match unit {
                UnitArg::Auto => Bytes::Auto,
                UnitArg::Mb => Bytes::Mb,
                UnitArg::Bytes => Bytes::Plain,
            }),
            least: self.min,
            depth: self.depth.map(|depth| depth as usize),
            by_name: self.sort == Sort::Name,
        }
    }
}

impl InputArgs {
    /// The same, for the reader.
    pub fn options(&self) -> Options {
        Options { bytes: self.max_size, utf8: self.utf8, ..Options::default() }
    }
}

fn parse_least(text: &str) -> Result<Least, String> {
    match text.strip_suffix('%') {
        Some(percent) => match percent.trim().parse::<f64>() {
            Ok(percent) if percent >= 0.0 => Ok(Least::Percent(percent)),
            _ => Err("write it as `0.5%`".into()),
        },
        None => parse_number_of_bytes(text).map(Least::Amount),
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    let bytes = parse_number_of_bytes(text)?;
    // Up to 2^53 a double is a whole number exactly.
    format!("{:.0}", bytes.min(9e15)).parse().map_err(|_| "too large".into())
}

/// `4096`, `64K`, `1.5 MB`, `2GiB`: units are powers of 1024, as everywhere here.
pub(crate) fn parse_number_of_bytes(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (digits, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()));
    let factor = match unit.trim().to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i')
    {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1_048_576.0,
        "g" => 1_073_741_824.0,
        _ => return Err(format!("unknown unit `{}`; B, KB, MB and GB are known", unit.trim())),
    };
    let number: f64 =
        digits.parse().map_err(|_| "write it as `4096`, `64K` or `1.5MB`".to_owned())?;
    Ok(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_units_of_1024() {
        for (text, bytes) in [
            ("0", 0.0),
            ("4096", 4096.0),
            ("64K", 65536.0),
            ("1.5 MB", 1_572_864.0),
            ("2GiB", 2_147_483_648.0),
        ] {
            assert_eq!(parse_number_of_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "x", "1T", "-1", "1.2.3", "MB"] {
            assert!(parse_number_of_bytes(text).is_err(), "{text}");
        }
        assert_eq!(parse_least("0.5%"), Ok(Least::Percent(0.5)));
        assert_eq!(parse_least("1K"), Ok(Least::Amount(1024.0)));
    }
}

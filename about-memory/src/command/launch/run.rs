//! `about-memory run`: runs a program with DMD on, and shows its memory report and its dark matter.

mod leaked;
mod listen;
mod outcome;
mod folder;
mod watch;
mod peaks;
mod surroundings;

use super::error::{RunError, describe_end};
use super::program;
use super::tracking::{ProcessArgs, Tracking};
use crate::command::flags::{DisplayArgs, interval, percent};
use crate::command::view::recording::write_places;
use crate::command::view::show::ShowArgs;
use crate::context::Context;
use crate::error::Failure;
use crate::input::InputArgs;
use crate::input::dump::DumpReader;
use crate::input::folder::working_directory;
use crate::report::unclassified::{Verdict, unclassified_percent};
use clap::Args;
use memreport_analysis::analysis;
use memreport_analysis::analysis::{ExplainOptions, Explained, Place};
use memreport_analysis::recording::{Recording, Which};
use memreport_analysis::retention;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use watch::Setup;

pub use outcome::{Ran, SavedSnapshot};
pub use surroundings::Surroundings;

/// `about-memory run`
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Snapshots are taken when the program calls `memreport::snapshot().save(…)`, at intervals with --every, near the peak with \
--at-peak, on Ctrl-C or SIGTERM, and at exit. The last one before the exit is shown: at exit, the locals of the program are \
dropped already.

$DMD is set to 1 unless it is set already; its option `--stacks` trades detail for speed.

With --json, standard output has the answer alone: what the program prints goes to standard error.

A program without DMD runs with a library (LD_PRELOAD) that tracks its malloc: a dynamically linked program for glibc, or a \
script. Its signals stay as they are, so nothing is saved if one ends it. With --children its child processes are tracked too.")]
pub struct RunArgs {
    /// Flags of the run.
    #[command(flatten)]
    pub options: RunOptions,

    /// The program and its arguments, after `--`
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,

    /// The surroundings of the program.
    #[arg(skip)]
    pub surroundings: Surroundings,
}

/// Flags of a run, whichever program it is.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// Take a snapshot at this interval
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub every: Option<Duration>,

    /// Take a snapshot whenever the heap has grown by 5 %, so that the last one is near the peak,
    /// and record all blocks to show the blocks of the exact peak; the program becomes slower
    #[arg(long)]
    pub at_peak: bool,

    /// Keep the newest N snapshots of each process
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,

    /// Show N records of dark matter
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// Exit with code 1 if a larger share of the heap is unclassified, or anything is reported
    /// twice or wrongly
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_above: Option<f64>,

    /// Keep the snapshots and dumps in this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,

    /// Flags of the processes to track.
    #[command(flatten)]
    pub processes: ProcessArgs,

    /// Leave private words out of reports: those that the program's reporters replace on request,
    /// and names of mapped files
    #[arg(long)]
    pub anonymize: bool,

    /// Flags of the display of the tree.
    #[command(flatten)]
    pub display: DisplayArgs,
}

impl RunArgs {
    /// Runs the program to its end, and shows the last snapshot of each of its processes.
    ///
    /// # Errors
    ///
    /// The program cannot be started or its files cannot be shown.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let ran = run(&self)?;
        let mut verdicts = Vec::new();
        if self.options.display.json {
            verdicts = self.write_json(&ran, context)?;
        }
        for snapshot in ran.last().into_iter().filter(|_| !self.options.display.json) {
            write_heading(&ran, snapshot, &mut context.out)?;
            writeln!(context.out)?;
            self.show(snapshot, context)?;
            writeln!(context.out)?;
            verdicts.push(self.explain(snapshot, context)?);
            if let Some(recording) = ran.peaks.of(snapshot.pid) {
                self.write_peak(recording, context)?;
            }
            context.out.flush()?;
        }
        for note in &ran.notes {
            writeln!(context.notes, "note: {note}")?;
        }
        let is_within = self.judge(&ran, &verdicts, context)?;
        if let Some(end) = describe_end(ran.status) {
            writeln!(context.notes, "note: {}", end.sentence)?;
            return Ok(ExitCode::from(end.code));
        }
        Ok(if is_within { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    /// Prints a JSON array: the report and the explained dump of the last snapshot of each process.
    fn write_json(&self, ran: &Ran, context: &mut Context<'_>) -> Result<Vec<Verdict>, Failure> {
        let mut verdicts = Vec::new();
        let mut separator = "[";
        for snapshot in ran.last() {
            let moment = serde_json::to_string(&snapshot.moment)?;
            let (pid, seconds) = (snapshot.pid, snapshot.after.as_secs_f64());
            write!(
                context.out.json(),
                "{separator}{{\"pid\":{pid},\"moment\":{moment},\"seconds\":{seconds:.3},\"report\":"
            )?;
            self.show(snapshot, context)?;
            write!(context.out.json(), ",\"heap\":")?;
            let Analysed { explained, options, .. } = self.analysed(snapshot, context)?;
            analysis::write_explained_json(&explained, &options, &mut context.out.json())?;
            write!(context.out.json(), "}}")?;
            separator = ",\n";
            verdicts.push(verdict(&explained, snapshot)?);
        }
        writeln!(context.out.json(), "{}", if verdicts.is_empty() { "[]" } else { "]" })?;
        context.out.flush()?;
        Ok(verdicts)
    }

    /// Prints the report of a snapshot.
    fn show(&self, snapshot: &SavedSnapshot, context: &mut Context<'_>) -> Result<(), Failure> {
        let input = InputArgs { max_size: u64::MAX, utf8: true };
        let files = vec![snapshot.report.clone()];
        ShowArgs { files, display: self.options.display.clone(), input }.run(context)?;
        Ok(())
    }

    /// Compares the snapshots with the limit of `--fail-above`. Returns whether all are within it.
    fn judge(
        &self,
        ran: &Ran,
        verdicts: &[Verdict],
        context: &mut Context<'_>,
    ) -> io::Result<bool> {
        let Some(most) = self.options.fail_above else { return Ok(true) };
        let mut is_within = true;
        if ran.snapshots.is_empty() {
            writeln!(context.notes, "note: nothing was measured, so nothing is within the limit")?;
            is_within = false;
        }
        for complaint in verdicts.iter().flat_map(|verdict| verdict.complaints(most)) {
            writeln!(context.notes, "note: {complaint}")?;
            is_within = false;
        }
        Ok(is_within)
    }

    /// Prints the exact peak, and the places of the blocks that lived at that moment.
    fn write_peak(&self, recording: &Recording, context: &mut Context<'_>) -> Result<(), Failure> {
        let Some(peak) = recording.peak() else { return Ok(()) };
        let (millis, bytes) = (peak.time / 1000, peak.bytes);
        writeln!(
            context.out,
            "The heap was biggest {}.{:03} s after the start, with {bytes} bytes allocated.",
            millis / 1000,
            millis % 1000
        )?;
        write_places(
            &recording.dump(Which::AtPeak)?,
            Which::AtPeak,
            self.options.top,
            &mut DumpReader::default(),
            context,
        )
    }

    /// Prints the analysis of a dump, and judges it.
    fn explain(
        &self,
        snapshot: &SavedSnapshot,
        context: &mut Context<'_>,
    ) -> Result<Verdict, Failure> {
        let Analysed { explained, options, leaked } = self.analysed(snapshot, context)?;
        analysis::write_summary(&explained, &options, &mut context.out)?;
        if let Some(places) = leaked {
            leaked::write(&places, self.options.top, &mut context.out)?;
        }
        verdict(&explained, snapshot)
    }

    /// Analyses the dump of a snapshot.
    fn analysed(
        &self,
        snapshot: &SavedSnapshot,
        context: &mut Context<'_>,
    ) -> Result<Analysed, Failure> {
        let mut dump = DumpReader::load(&snapshot.dump)?;
        for note in DumpReader::default().symbolicate(&mut dump) {
            writeln!(context.notes, "note: {note}")?;
        }
        let mut options = ExplainOptions::default();
        options.top = self.options.top;
        options.root = working_directory();
        let explained = analysis::explain(&dump, &options);
        // Whether something is leaked is known of a scan alone.
        let leaked = retention::left(&mut dump, &options).ok().map(|left| left.leaked);
        Ok(Analysed { explained, options, leaked })
    }
}

/// The analysis of a dump.
struct Analysed {
    explained: Explained,
    options: ExplainOptions,
    /// The places of leaked blocks, if the dump is a scan.
    leaked: Option<Vec<Place>>,
}

/// Judges a snapshot.
fn verdict(explained: &Explained, snapshot: &SavedSnapshot) -> Result<Verdict, Failure> {
    let unclassified = unclassified_percent(&mut File::open(&snapshot.report)?)?;
    Ok(Verdict::new(explained, unclassified))
}

/// Runs the program to its end, and collects its snapshots.
///
/// # Errors
///
/// The program does not exist or cannot be tracked, or the folder or its socket cannot be created.
pub fn run(args: &RunArgs) -> Result<Ran, RunError> {
    let name = args.command.first().cloned().unwrap_or_default();
    let program = program::find(&name)?;
    let tracking = Tracking::of(&program, args.options.processes)?;
    Setup::open(args.options.output.as_deref())?.run(args, &program, tracking)
}

/// Writes the first line: the time and the reason of the snapshot.
///
/// # Errors
///
/// The answer cannot be written.
fn write_heading(ran: &Ran, snapshot: &SavedSnapshot, out: &mut dyn Write) -> io::Result<()> {
    let count = ran.count(snapshot.pid);
    let of = if count == 1 {
        "the only snapshot".to_owned()
    } else {
        format!("one of {count} snapshots")
    };
    writeln!(
        out,
        "Snapshot of process {} {}, {:.1} s after the start ({of})",
        snapshot.pid,
        snapshot.moment,
        snapshot.after.as_secs_f64()
    )?;
    if snapshot.is_at_exit() {
        let or_call = if ran.tracking.is_preloaded() {
            ""
        } else {
            ", or have it call memreport::snapshot().save(…)"
        };
        writeln!(
            out,
            "Only the state at exit was seen, when the program's locals are gone: use --every or --at-peak{or_call}"
        )?;
    }
    Ok(())
}

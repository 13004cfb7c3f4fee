//! `about-memory record -- PROGRAM` and `about-memory recording FILE`: what a program allocates and gives back over time.

mod json;
mod view;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use memreport_analysis::analysis;
use memreport_analysis::analysis::{By, ExplainOptions};
use memreport_analysis::recording;
use memreport_analysis::recording::{Recording, Which};
use memreport_analysis::symbols::{Options, Symboliser};

use crate::run::{RunError, describe_end, program};
use crate::show::Failure;

/// `about-memory record`
#[derive(Debug, Args)]
#[command(after_help = "\
$DMD says which blocks are recorded; without it, a sample: one byte in 512 KiB is hit, and its block is recorded from its birth \
to its end, on whichever threads they happen. `DMD=--mode=live` records every block of a program that does not allocate too fast.")]
pub struct RecordArgs {
    /// Where to write the recording; those of processes that the program starts get their numbers appended
    #[arg(short, long, value_name = "FILE", default_value = "recording.gz")]
    output: PathBuf,
    /// PROGRAM only starts the one to be recorded, as a shell script or `cargo run` does: do not look into its file
    #[arg(long)]
    wrapper: bool,
    /// The program and its arguments, after `--`
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// `about-memory recording`
#[derive(Debug, Args)]
pub struct RecordingArgs {
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Which blocks are shown by where they were allocated
    #[arg(long, value_enum, default_value_t = WhichKey::Retained)]
    which: WhichKey,
    /// How many places to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Answer in JSON: what it comes to, in bytes
    #[arg(long, conflicts_with_all = ["top", "symbols"])]
    json: bool,
    /// Write those blocks as a DMD dump, which `dmd`, `heap`, `export` and others read; gzipped if the name ends in `.gz`
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
    /// Look for the program's files and symbols here first; repeat for several
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
}

/// Which blocks of a recording.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum WhichKey {
    /// All that were allocated
    Allocated,
    /// Those that lived at the end
    Retained,
    /// Those that lived when the program had the most in live blocks
    Peak,
    /// Those that were given back within a millisecond
    Temporary,
}

impl From<WhichKey> for Which {
    fn from(key: WhichKey) -> Self {
        match key {
            WhichKey::Allocated => Which::Allocated,
            WhichKey::Retained => Which::Retained,
            WhichKey::Peak => Which::AtPeak,
            WhichKey::Temporary => Which::Temporary,
        }
    }
}

/// Records a program to its end. Answers with its exit code.
///
/// # Errors
/// When it cannot be started or left nothing, and those of `out`.
pub fn record(
    args: &RecordArgs,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Failure> {
    let program = program::find(&args.command[0])?;
    if !args.wrapper {
        program::check(&program)?;
    }
    let folder = args.output.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // Beside the file it is to become, so that it only has to be renamed.
    let unfinished = tempfile::Builder::new()
        .prefix(".recording-")
        .tempdir_in(folder)
        .map_err(|error| RunError::Folder(folder.to_owned(), error))?;
    // Ctrl-C is for the program; what it leaves is to be shown.
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let mut command = Command::new(&program);
    command.args(&args.command[1..]);
    command.env(dmd::record::VARIABLE, fs::canonicalize(unfinished.path())?.join("%p"));
    let mut child = command.spawn().map_err(|error| RunError::Start(program.clone(), error))?;
    let pid = child.id();
    let status = child.wait()?;
    let kept = keep(unfinished.path(), &args.output, pid, args.wrapper)?;
    if kept.is_empty() {
        writeln!(notes, "about-memory: nothing was recorded: no process with DMD was seen")?;
    }
    for file in &kept {
        let recording = open(file)?;
        writeln!(out, "Recorded into {}", file.display())?;
        view::write(&recording, out)?;
    }
    match describe_end(status) {
        None => Ok(0),
        Some((sentence, code)) => {
            writeln!(notes, "about-memory: {sentence}")?;
            Ok(code)
        }
    }
}

/// Gives the recordings their names: the program's own first.
fn keep(from: &Path, output: &Path, pid: u32, is_wrapped: bool) -> io::Result<Vec<PathBuf>> {
    let mut recordings: Vec<(u32, PathBuf)> = fs::read_dir(from)?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.parse().ok()?, path))
        })
        .collect();
    // Under a wrapper, the first process that it started stands for the program.
    let first = if is_wrapped { recordings.iter().map(|(pid, _)| *pid).min() } else { Some(pid) };
    recordings.sort_by_key(|(pid, _)| (Some(*pid) != first, *pid));
    recordings
        .into_iter()
        .map(|(pid, path)| {
            let mut name = output.as_os_str().to_owned();
            if Some(pid) != first {
                name.push(format!(".{pid}"));
            }
            fs::rename(path, &name)?;
            Ok(PathBuf::from(name))
        })
        .collect()
}

fn open(path: &Path) -> Result<Recording, Failure> {
    let named = |error: &dyn std::error::Error| format!("{}: {error}", path.display());
    let file = File::open(path)
        .map_err(|error| format!("{}: cannot read the recording: {error}", path.display()))?;
    Ok(recording::read(file).map_err(|error| named(&error))?)
}

/// Shows a recording.
///
/// # Errors
/// When it cannot be read, and those of `out` and of the dump.
pub fn show(
    args: &RecordingArgs,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Failure> {
    let recording = open(&args.file)?;
    let dump = recording.dump(args.which.into());
    if args.json {
        json::write(&recording, out)?;
    } else {
        view::write(&recording, out)?;
        write_places(args, &dump, out, notes)?;
    }
    if let Some(path) = &args.dump {
        memreport::__private::atomically(path, |file| file.write_all(&dump))?;
        writeln!(notes, "wrote {}", path.display())?;
    }
    Ok(())
}

/// Where the chosen blocks were allocated.
fn write_places(
    args: &RecordingArgs,
    dump: &[u8],
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Failure> {
    let mut dump = memreport_analysis::read::read_slice(dump)?;
    let mut symbols = Options::default();
    symbols.search.clone_from(&args.symbols);
    for note in Symboliser::new(symbols).symbolicate(&mut dump).notes {
        writeln!(notes, "note: {note}")?;
    }
    let mut options = ExplainOptions::default();
    options.root = std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned());
    writeln!(out, "\n{}:\n", view::heading(args.which.into()))?;
    let groups = analysis::group_by(&dump, By::Stack, &options);
    Ok(analysis::write_groups(&groups, args.top, out)?)
}

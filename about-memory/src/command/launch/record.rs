//! `about-memory record`: records the allocations of a program over time, from its start or while
//! it runs.

mod running;

use super::error::{RunError, describe_end};
use super::program;
use super::tracking::{ProcessArgs, Tracking};
use crate::command::flags::{candidates, seconds};
use crate::command::view::recording::write_places;
use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::dump::{DumpError, DumpReader, read_recording};
use crate::input::live::Target;
use crate::render::recording::text;
use clap::Args;
use memreport_analysis::recording::Which;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{fs, io};

/// `about-memory record`
#[derive(Debug, Args)]
#[command(override_usage = "\
about-memory record [OPTIONS] -- PROGRAM [ARGUMENTS]
       about-memory record [OPTIONS] PID|NAME [-- WORDS]")]
#[command(after_help = "\
$DMD selects the recorded blocks. By default this is a sample, one block per 512 KiB on average, each from its allocation to \
its release on any thread. `DMD=--mode=live` records every block. A program that allocates faster than the recording is \
written waits for it, unless it is lossy.

The recording of a running program ends on Ctrl-C, after --for, or with the program. Words after `--` are options as in $DMD; \
without any, the options in force are kept. Afterwards tracking is as it was before.

The exit status is the program's own, or 3 if the program succeeds and the recording is incomplete.")]
pub struct RecordArgs {
    /// Flags of the recording.
    #[command(flatten)]
    pub options: RecordOptions,
    /// A running program to record, by pid or name; see `about-memory ps`
    #[arg(value_name = "PID|NAME", add = candidates::programs(), conflicts_with_all = ["wrapper", "children"])]
    pub process: Option<Target>,
    /// End the recording of a running program after this time
    #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
    pub length: Option<Duration>,
    /// After `--`: the program to start and its arguments
    #[arg(required_unless_present = "process", last = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// Flags of a recording, whichever program it is of.
#[derive(Args, Clone, Debug)]
pub struct RecordOptions {
    /// Write the recording to this file; child processes append their pids to the name
    #[arg(short, long, value_name = "FILE", default_value = "recording.gz")]
    pub output: PathBuf,
    /// Never make the program wait: lose allocations and frees that come too fast, and count them
    #[arg(long)]
    pub lossy: bool,
    /// Record the stack of each free too, not only its thread. A free then costs the program as
    /// much as an allocation
    #[arg(long)]
    pub free_stacks: bool,
    /// Show N places of the blocks at the peak, of those at the end, and of those that were freed
    /// at once; `about-memory recording` shows more
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub top: usize,
    /// Flags of the processes to track.
    #[command(flatten)]
    pub processes: ProcessArgs,
}

impl RecordArgs {
    /// Records the program, and prints a summary.
    ///
    /// # Errors
    /// The program cannot be started or asked, a recording cannot be read, or the answer cannot be
    /// written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        if let Some(process) = &self.process {
            return running::record(&self, process, context);
        }
        if self.length.is_some() {
            let name = self.command[0].display();
            return Err(format!(
                "--for is for running programs; to record a program from its start, use `timeout TIME {name} …`"
            )
            .into());
        }
        self.record_from_start(context)
    }

    fn record_from_start(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let program = program::find(&self.command[0])?;
        let tracking = Tracking::of(&program, self.options.processes)?;
        let folder = self.options.output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        // A folder beside the output, so that renaming moves the file there.
        let unfinished = tempfile::Builder::new()
            .prefix(".recording-")
            .tempdir_in(folder)
            .map_err(|error| RunError::Folder(folder.to_owned(), error))?;
        // Ctrl-C ends the program, not this process, which still prints the summary.
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        let mut command = Command::new(&program);
        command.args(&self.command[1..]);
        let mut name = OsString::new();
        for (is_chosen, word) in
            [(self.options.lossy, "--lossy "), (self.options.free_stacks, "--free-stacks ")]
        {
            name.push(if is_chosen { word } else { "" });
        }
        name.push(fs::canonicalize(unfinished.path())?.join("%p"));
        command.env(dmd::record::VARIABLE, name);
        tracking.apply(&mut command);
        let mut child = command.spawn().map_err(|error| RunError::Start(program.clone(), error))?;
        let pid = child.id();
        let status = child.wait()?;
        let kept =
            keep(unfinished.path(), &self.options.output, pid, self.options.processes.wrapper)?;
        if kept.is_empty() {
            writeln!(context.notes, "note: nothing was recorded: {}", tracking.silence())?;
        }
        if let Some(note) = tracking.note() {
            writeln!(context.notes, "note: {note}")?;
        }
        let mut is_whole = true;
        for file in &kept {
            is_whole &= summarize(file, self.options.top, context)?;
        }
        let Some(end) = describe_end(status) else {
            return Ok(exit_code(!is_whole));
        };
        writeln!(context.notes, "note: {}", end.sentence)?;
        Ok(ExitCode::from(end.code))
    }
}

/// Prints the summary of a recording, and the `top` places of each kind. Returns whether it is
/// whole.
fn summarize(file: &Path, top: usize, context: &mut Context<'_>) -> Result<bool, Failure> {
    let recording = read_recording(file)?;
    let unreadable = |error| DumpError::Recording(file.to_owned(), error);
    writeln!(context.out, "Recorded into {}", file.display())?;
    text::write(&recording, &recording.sums().map_err(unreadable)?, &mut context.out)?;
    if top > 0 {
        // One reader: each function is looked up once.
        let mut reader = DumpReader::default();
        let choices = [Which::AtPeak, Which::Retained, Which::Temporary];
        let dumps = recording.dumps(choices).map_err(unreadable)?;
        for (which, dump) in choices.into_iter().zip(dumps) {
            write_places(&dump, which, top, &mut reader, context)?;
        }
    }
    Ok(recording.is_whole)
}

/// Renames the recordings. The program's own comes first.
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

#[cfg(test)]
mod tests {
    use super::keep;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_recording_of_the_program_has_the_name_and_others_their_pid() {
        // The pid of the started program, whether it is a wrapper, and the files in their order.
        for (pid, is_wrapped, expected) in [
            (40, false, [("out.rec", "40"), ("out.rec.7", "7"), ("out.rec.300", "300")]),
            (40, true, [("out.rec", "7"), ("out.rec.40", "40"), ("out.rec.300", "300")]),
            (5, false, [("out.rec.7", "7"), ("out.rec.40", "40"), ("out.rec.300", "300")]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let from = folder.path().join("from");
            fs::create_dir(&from).unwrap();
            for name in ["7", "300", "40", "no number"] {
                fs::write(from.join(name), name).unwrap();
            }
            let kept = keep(&from, &folder.path().join("out.rec"), pid, is_wrapped).unwrap();
            let found = kept.iter().map(|path| {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap();
                (name.to_owned(), fs::read_to_string(path).unwrap())
            });
            let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{pid} {is_wrapped}");
            assert!(Path::new(&from.join("no number")).exists());
        }
    }
}

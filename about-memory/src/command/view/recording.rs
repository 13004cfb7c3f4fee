//! `about-memory recording FILE`: summarises a recording.

use crate::command::flags::refuse_input;
use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::dump::{DumpArgs, DumpError, DumpReader, read_recording};
use crate::input::folder::working_directory;
use crate::render::recording::{json, text};
use clap::{Args, ValueEnum};
use memreport_analysis::analysis;
use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::axis::Axis;
use memreport_analysis::recording::Which;
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory recording`
#[derive(Debug, Args)]
pub struct RecordingArgs {
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show the places that allocated these blocks, or with `freed` those that freed them
    #[arg(long, value_enum, default_value_t = WhichKey::Retained)]
    which: WhichKey,
    /// Show N places
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print the summary as JSON, in bytes; `--which` then only chooses the blocks of `--dump`
    #[arg(long, conflicts_with_all = ["top", "symbols"])]
    json: bool,
    /// Write those blocks as a DMD dump for the commands of `heap`, for `export` and others;
    /// gzipped if the name ends in `.gz`
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
    /// Flags of symbolication.
    #[command(flatten)]
    symbols: DumpArgs,
}

/// The blocks of a recording to show.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum WhichKey {
    /// All blocks
    Allocated,
    /// Blocks that were alive at the end
    Retained,
    /// Blocks that were alive at the peak of live memory
    Peak,
    /// Blocks that were freed within a millisecond
    Temporary,
    /// Blocks that were freed, by where: for a recording with `--free-stacks`
    Freed,
}

impl From<WhichKey> for Which {
    fn from(key: WhichKey) -> Self {
        match key {
            WhichKey::Allocated => Which::Allocated,
            WhichKey::Retained => Which::Retained,
            WhichKey::Peak => Which::AtPeak,
            WhichKey::Temporary => Which::Temporary,
            WhichKey::Freed => Which::Freed,
        }
    }
}

impl RecordingArgs {
    /// Prints the summary of a recording and the places of the chosen blocks. The exit status is 3
    /// if the recording is incomplete.
    ///
    /// # Errors
    /// The recording cannot be read, or the answer or the dump cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        if let Some(dump) = &self.dump {
            refuse_input(dump, [&self.file])?;
        }
        let recording = read_recording(&self.file)?;
        if matches!(self.which, WhichKey::Freed) && !recording.has_free_stacks {
            return Err(format!(
                "{}: it has no stacks of frees; record them with `about-memory record --free-stacks`",
                self.file.display()
            )
            .into());
        }
        let unreadable = |error| DumpError::Recording(self.file.clone(), error);
        let which = self.which.into();
        let sums = recording.sums().map_err(unreadable)?;
        // The blocks are read once more for it.
        let dump = match self.json && self.dump.is_none() {
            true => Vec::new(),
            false => recording.dump(which).map_err(unreadable)?,
        };
        if self.json {
            json::write(&recording, &sums, &mut context.out.json())?;
        } else {
            text::write(&recording, &sums, &mut context.out)?;
            write_places(&dump, which, self.top, &mut self.symbols.reader(), context)?;
        }
        if let Some(path) = &self.dump {
            memreport::__private::atomically(path, |file| file.write_all(&dump))
                .map_err(|error| DumpError::Create(path.clone(), error))?;
            writeln!(context.notes, "note: wrote {}", path.display())?;
        }
        Ok(exit_code(!recording.is_whole))
    }
}

/// Prints the places where the chosen blocks of a recording were allocated. `dump` consists of
/// these.
pub(crate) fn write_places(
    dump: &[u8],
    which: Which,
    top: usize,
    reader: &mut DumpReader,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let mut dump = memreport_analysis::read::read_slice(dump)?;
    for note in reader.symbolicate(&mut dump) {
        writeln!(context.notes, "note: {note}")?;
    }
    let mut options = ExplainOptions::default();
    options.root = working_directory();
    writeln!(context.out, "\n{}:\n", text::heading(which))?;
    let groups = analysis::group_by(&dump, &Axis::stack(), &options);
    Ok(analysis::write_groups(&groups, top, &mut context.out)?)
}

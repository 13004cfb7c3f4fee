//! `about-memory heap diff A B`: shows which places grew between two dumps or two moments of
//! recordings.

use crate::command::flags::{BlockArgs, candidates};
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpArgs, DumpError, DumpSource};
use crate::input::folder;
use clap::Args;
use memreport_analysis::analysis::DifferentModes;
use memreport_analysis::heap::Heap;
use memreport_analysis::heap::growth;
use memreport_analysis::heap::growth::Growth;
use memreport_analysis::read::Mode;
use memreport_analysis::recording::Moment;
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory heap diff`
#[derive(Debug, Args)]
pub struct HeapDiffArgs {
    /// The earlier dump or recording, or a folder: compares its first dump with its last, by name
    #[arg(value_name = "A|FOLDER", add = candidates::programs_and_files())]
    first: PathBuf,

    /// The later dump or recording, or the pid or the name of a running program [default: A, which
    /// must be a recording]
    #[arg(value_name = "B|PID|NAME", add = candidates::programs_and_files())]
    second: Option<PathBuf>,

    /// The moment of the recording A: `peak`, `end`, or seconds since the start [default: end;
    /// without B, the start]
    #[arg(long, value_name = "MOMENT")]
    from: Option<Moment>,

    /// The moment of the recording B; without B, the later moment of A [default: end]
    #[arg(long, value_name = "MOMENT")]
    to: Option<Moment>,

    /// Show N places; the others are one line
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// The blocks and frames to show.
    #[command(flatten)]
    blocks: BlockArgs,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

/// The heaps to compare.
struct TwoHeaps {
    before: Heap,
    after: Heap,
}

impl HeapDiffArgs {
    /// Prints the places that grew.
    ///
    /// # Errors
    /// The files cannot be read or compared, or the answer cannot be written.
    pub fn run(mut self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        if self.second.is_none() && self.first.is_dir() {
            let found = folder::first_and_last_dump(&self.first)?;
            let (first, last) = (found.first.display(), found.last.display());
            writeln!(context.notes, "note: {first} and {last}, of {} dumps", found.count)?;
            (self.first, self.second) = (found.first, Some(found.last));
        }
        let TwoHeaps { before, after } = self.heaps(context)?;
        let mut growth = growth::growth(&before, &after);
        if self.json {
            growth::write_json(&growth, self.top, &mut context.out.json())
        } else {
            shorten(&mut growth);
            growth::write_text(&growth, self.top, &mut context.out)
        }?;
        Ok(ExitCode::SUCCESS)
    }

    fn heaps(&self, context: &mut Context<'_>) -> Result<TwoHeaps, DumpError> {
        let mut reader = self.dump.reader();
        let options = self.blocks.options();
        let first = reader.open(&self.first, &mut context.notes)?;
        let Some(path) = &self.second else {
            if matches!(first, DumpSource::Dump(_)) {
                return Err(DumpError::Alone(self.first.clone()));
            }
            let from = self.from.unwrap_or(Moment::After(0));
            let before = first.heap(Some(from), &options, &self.first)?;
            return Ok(TwoHeaps { before, after: first.heap(self.to, &options, &self.first)? });
        };
        let second = reader.open(path, &mut context.notes)?;
        if !are_alike(&first, &second) {
            return Err(DumpError::Modes(DifferentModes));
        }
        let before = first.heap(self.from, &options, &self.first)?;
        Ok(TwoHeaps { before, after: second.heap(self.to, &options, path)? })
    }
}

/// Removes the working directory from paths of the program.
fn shorten(growth: &mut Growth) {
    let Ok(root) = std::env::current_dir() else { return };
    let root = format!("{}/", root.display());
    for line in growth.places.iter_mut().flat_map(|place| &mut place.lines).flatten() {
        if let Some(rest) = line.strip_prefix(&root) {
            *line = rest.to_owned();
        }
    }
}

/// Returns whether both contain the same kind of blocks. Recordings contain live blocks.
fn are_alike(first: &DumpSource, second: &DumpSource) -> bool {
    match (first, second) {
        (DumpSource::Dump(first), DumpSource::Dump(second)) => {
            first.invocation.mode == second.invocation.mode
        }
        (DumpSource::Dump(dump), _) | (_, DumpSource::Dump(dump)) => {
            dump.invocation.mode != Mode::Cumulative
        }
        _ => true,
    }
}

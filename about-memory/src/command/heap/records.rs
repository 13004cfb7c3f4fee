//! `about-memory heap records DUMP [DUMP2]`: shows the records of dumps with the options and the
//! text of dmd.py.

mod args;

use crate::command::flags::{Output, refuse_input};
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpError, DumpReader};
use crate::input::folder;
use crate::render::terminal_text::TerminalText;
use memreport_analysis::analysis;
use memreport_analysis::analysis::{
    BlockReferrers, ClampStats, Digest, ExplainOptions, Explained, Filter, Group, Grouping, Stacks,
    TextOptions,
};
use memreport_analysis::read::Dump;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::io::{self, Write};
use std::iter;
use std::mem::ManuallyDrop;
use std::path::{Path, is_separator};
use std::process::ExitCode;

pub use args::RecordsArgs;

impl RecordsArgs {
    /// Prints the records, or writes them to the file of `--output`.
    ///
    /// # Errors
    /// A dump cannot be read, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        if let Some(output) = &self.output {
            refuse_input(output, iter::once(&self.input).chain(&self.input2))?;
        }
        // The process is about to end: do not free a million records one by one.
        let answer = ManuallyDrop::new(Answer::prepare(&self, &mut context.notes)?);
        let written = match &self.output {
            None => answer.write(&self, &mut context.out).and_then(|()| context.out.flush()),
            Some(path) => {
                // Create the file last: an error above leaves an older file alone.
                let mut file =
                    Output::create(path).map_err(|error| DumpError::Create(path.clone(), error))?;
                answer.write(&self, &mut TerminalText::new(&mut file)).and_then(|()| file.keep())
            }
        };
        written.map_err(Failure::answer)?;
        Ok(ExitCode::SUCCESS)
    }

    fn explain_options(&self) -> ExplainOptions {
        let mut options = ExplainOptions::default();
        let is_list = self.by.is_some() || self.referrers.is_some();
        options.top = self.top.unwrap_or(if is_list { 20 } else { 5 });
        options.max_frames = self.max_frames.into();
        options.root = folder::working_directory();
        options
    }
}

/// Reads a dump, clamps its contents if `--clamp-contents` is set, and symbolicates it.
fn read(
    path: &Path,
    args: &RecordsArgs,
    reader: &mut DumpReader,
    notes: &mut dyn Write,
) -> Result<Dump, DumpError> {
    let mut dump = DumpReader::load(path)?;
    for note in &dump.notes {
        print_note(notes, &format!("{}: {note}", path.display()));
    }
    if args.clamp_contents {
        let stats =
            analysis::clamp(&mut dump).map_err(|error| DumpError::Clamp(path.to_owned(), error))?;
        if args.print_clamp_stats {
            print_note(notes, &clamp_stats(&stats));
        }
    }
    if !args.no_fix_stacks {
        for note in reader.symbolicate(&mut dump) {
            print_note(notes, &note);
        }
    }
    Ok(dump)
}

/// Prints a note. A closed standard error must not stop the answer.
fn print_note(notes: &mut dyn Write, text: &str) {
    let _ = writeln!(notes, "note: {text}");
}

/// Returns the text of dmd.py for these statistics.
fn clamp_stats(stats: &ClampStats) -> String {
    format!(
        "Results:\n  Number of pointers already pointing to start of blocks: {}\n  Number of pointers clamped to start \
         of blocks: {}\n  Number of non-null pointers not pointing into blocks clamped to null: {}\n  Number of null \
         pointers: {}",
        stats.to_start, stats.into_block, stats.to_nothing, stats.null
    )
}

/// The answer to print.
enum Answer {
    Records(Digest, Stacks),
    Explained(Explained, ExplainOptions),
    Groups(Vec<Group>, usize),
    Referred(Box<Dump>, BlockReferrers, ExplainOptions),
}

impl Answer {
    fn prepare(args: &RecordsArgs, notes: &mut dyn Write) -> Result<Self, DumpError> {
        let mut reader = args.dump.reader();
        let first = read(&args.input, args, &mut reader, notes)?;
        let mut options = args.explain_options();
        if let Some(address) = args.referrers {
            let referred = analysis::referrers(&first, address)
                .map_err(|error| DumpError::Referrers(args.input.clone(), error))?;
            return Ok(Self::Referred(Box::new(first), referred, options));
        }
        if let Some(axis) = &args.by {
            return Ok(Self::Groups(analysis::group_by(&first, axis, &options), options.top));
        }
        if args.explain || args.json {
            if !args.no_fix_stacks {
                let types = analysis::pointing_types(&first, &options);
                options.members = reader.members(&first, &types);
            }
            return Ok(Self::Explained(analysis::explain(&first, &options), options));
        }
        if first.extension.as_ref().is_some_and(|ours| ours.sampled.is_some()) {
            let note = format!(
                "{}: its blocks are a sample of the heap, and so are these figures; `--explain` estimates the whole heap",
                args.input.display()
            );
            print_note(notes, &note);
        }
        let how = Grouping::new(args.max_frames.into(), args.ignore_alloc_fns);
        let mut stacks = Stacks::default();
        let mut digest = analysis::digest(&first, &how, &mut stacks);
        if let Some(path) = &args.input2 {
            let second = read(path, args, &mut reader, notes)?;
            digest = analysis::diff(digest, analysis::digest(&second, &how, &mut stacks))?;
        }
        Ok(Self::Records(digest, stacks))
    }

    fn write(&self, args: &RecordsArgs, out: &mut TerminalText<'_>) -> io::Result<()> {
        match self {
            Self::Explained(explained, options) if args.json => {
                analysis::write_explained_json(explained, options, &mut out.json())
            }
            Self::Explained(explained, options) => {
                analysis::write_explained(explained, options, out)
            }
            Self::Groups(groups, top) if args.json => {
                analysis::write_groups_json(groups, *top, &mut out.json())
            }
            Self::Groups(groups, top) => analysis::write_groups(groups, *top, out),
            Self::Referred(dump, referred, options) => {
                analysis::write_referrers(dump, referred, options, out)
            }
            Self::Records(digest, stacks) => {
                let options = TextOptions {
                    heading: heading(),
                    sort_by: args.sort_by.into(),
                    filters: args.filter.iter().map(|filter| Filter::new(filter)).collect(),
                    filter_stacks_for_testing: args.filter_stacks_for_testing,
                };
                analysis::write_text(digest, stacks, &options, out)
            }
        }
    }
}

/// Returns the command line without folders, so that the answer does not depend on the working
/// directory.
fn heading() -> String {
    let base = |arg: OsString| {
        let arg = arg.to_string_lossy();
        arg.rsplit(is_separator).next().unwrap_or_default().to_owned()
    };
    let mut words: Vec<String> = std::env::args_os().map(base).collect();
    if let Some(program) = words.first_mut()
        && let Some(name) = program.strip_suffix(EXE_SUFFIX)
    {
        *program = name.to_owned();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistics_of_clamping_are_in_the_words_of_dmd_py() {
        let stats = ClampStats { to_start: 1, into_block: 20, to_nothing: 300, null: 4000 };
        let expected = "\
Results:
  Number of pointers already pointing to start of blocks: 1
  Number of pointers clamped to start of blocks: 20
  Number of non-null pointers not pointing into blocks clamped to null: 300
  Number of null pointers: 4000";
        assert_eq!(clamp_stats(&stats), expected);
    }
}

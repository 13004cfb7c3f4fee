//! A dump as `about-memory dmd` takes it in: read, clamped if asked for; what is remarkable goes to standard error.

use std::io::{self, Write};
use std::path::Path;

use memreport_analysis::analysis;
use memreport_analysis::analysis::{ClampStats, ExplainOptions};
use memreport_analysis::read;
use memreport_analysis::read::Dump;
use memreport_analysis::symbols;
use memreport_analysis::symbols::Symboliser;

use super::{DmdArgs, DmdError};

/// Reads dumps; functions found for one are remembered for the next.
pub(super) struct Reader<'a> {
    args: &'a DmdArgs,
    symboliser: Symboliser,
    /// What has been said, so that nothing is said of both dumps.
    said: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(args: &'a DmdArgs) -> Self {
        let mut options = symbols::Options::default();
        options.search.clone_from(&args.symbols);
        Self { args, symboliser: Symboliser::new(options), said: Vec::new() }
    }

    /// Adds to `options` what only the program's file can tell.
    pub(super) fn complete(&mut self, dump: &Dump, options: &mut ExplainOptions) {
        if !self.args.no_fix_stacks {
            let types = analysis::pointing_types(dump, options);
            options.members = self.symboliser.members(dump, &types);
        }
    }

    pub(super) fn read(&mut self, path: &Path, err: &mut dyn Write) -> Result<Dump, DmdError> {
        let mut dump = read(path, self.args, err)?;
        if !self.args.no_fix_stacks {
            for note in self.symboliser.symbolicate(&mut dump).notes {
                if !self.said.contains(&note) {
                    remark(err, &note);
                    self.said.push(note);
                }
            }
        }
        Ok(dump)
    }
}

fn read(path: &Path, args: &DmdArgs, err: &mut dyn Write) -> Result<Dump, DmdError> {
    let dump = if path.as_os_str() == "-" {
        read::read(io::stdin().lock(), read::DEFAULT_LIMIT)
    } else {
        read::read_file(path)
    };
    let mut dump = dump.map_err(|error| DmdError::Read(path.to_owned(), error))?;
    for note in &dump.notes {
        remark(err, &format!("{}: {note}", path.display()));
    }
    if args.clamp_contents {
        let stats =
            analysis::clamp(&mut dump).map_err(|error| DmdError::Clamp(path.to_owned(), error))?;
        if args.print_clamp_stats {
            remark(err, &clamp_stats(&stats));
        }
    }
    Ok(dump)
}

/// Standard error is for people: that nobody reads it must not stop the answer.
fn remark(err: &mut dyn Write, text: &str) {
    let _ = writeln!(err, "{text}");
}

/// In dmd.py's words.
fn clamp_stats(stats: &ClampStats) -> String {
    format!(
        "Results:\n  Number of pointers already pointing to start of blocks: {}\n  Number of pointers clamped to start \
         of blocks: {}\n  Number of non-null pointers not pointing into blocks clamped to null: {}\n  Number of null \
         pointers: {}",
        stats.to_start, stats.into_block, stats.to_nothing, stats.null
    )
}

//! `about-memory explain-rss FILE…`: explains resident memory and its growth.

use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::dump::DumpReader;
use crate::input::open;
use crate::input::{InputArgs, folder};
use crate::render::resident::{html, text};
use crate::report::resident::{Blocks, Explanation, ProcessSnapshot, ProcessSnapshots};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `about-memory explain-rss`
#[derive(Debug, Args)]
pub struct ExplainRssArgs {
    /// Memory reports of one process, in any order; or a folder of them, or the pid of a running
    /// program
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Explain the process with NAME in its name [default: the process that wrote the file]
    #[arg(long, value_name = "NAME")]
    process: Option<String>,

    /// Print a fragment of HTML
    #[arg(long)]
    html: bool,

    /// Flags of the reader of reports.
    #[command(flatten)]
    input: InputArgs,
}

/// The columns of a line without a terminal.
const COLUMNS: usize = 100;

impl ExplainRssArgs {
    /// Prints the explanation.
    ///
    /// # Errors
    /// A file cannot be read or has no such process, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let mut snapshots = Vec::new();
        for file in folder::reports(&self.files)? {
            snapshots.push(self.read(&file, &mut context.notes)?);
        }
        let is_incomplete = snapshots.iter().any(|snapshot| snapshot.is_incomplete);
        let explanation = Explanation::new(snapshots);
        if self.html {
            html::write(&explanation, &mut context.out)?;
        } else {
            let columns = context.columns().unwrap_or(COLUMNS);
            text::write(&explanation, columns, &mut context.out)?;
        }
        Ok(exit_code(is_incomplete))
    }

    fn read(&self, path: &Path, notes: &mut dyn Write) -> Result<ProcessSnapshot, Failure> {
        let mut snapshots = ProcessSnapshots::default();
        let header = open::read(path, self.input.options(), &mut snapshots)?;
        let wanted = self.process.as_deref();
        let mut snapshot = snapshots.choose(wanted, &header).ok_or_else(|| match wanted {
            Some(name) => format!("{}: no process is called `{name}`", path.display()),
            None => format!("{}: it has no reports of any process", path.display()),
        })?;
        if let Some(beside) = folder::dump_of(path) {
            match DumpReader::load_amounts(&beside) {
                Ok(dump) => snapshot.blocks = Blocks::of_dump(&dump),
                // The dump is optional.
                Err(error) => writeln!(notes, "note: {error}")?,
            }
        }
        Ok(snapshot)
    }
}

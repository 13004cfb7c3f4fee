//! `about-memory heap coverage DUMP`: shows how much of the heap is reported exactly once.

use crate::command::flags::candidates;
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpArgs, DumpError};
use crate::input::folder;
use crate::render::coverage;
use clap::Args;
use memreport_analysis::analysis;
use memreport_analysis::analysis::ExplainOptions;
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory heap coverage`
#[derive(Debug, Args)]
pub struct CoverageArgs {
    /// A dump by DMD; `-` is standard input; or the pid or the name of a running program
    #[arg(value_name = "DUMP|PID|NAME", add = candidates::programs_and_files())]
    input: PathBuf,

    /// Show N crates, types, fields and suggestions
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Print JSON, with all crates, types, fields and suggestions
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print Markdown, for a comment or a page
    #[arg(long)]
    markdown: bool,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

/// The columns of a line without a terminal.
const COLUMNS: usize = 100;

impl CoverageArgs {
    /// Prints the coverage.
    ///
    /// # Errors
    /// The dump cannot be read or has no reports, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let dump = self.dump.reader().read(&self.input, &mut context.notes)?;
        let mut options = ExplainOptions::default();
        options.root = folder::working_directory();
        let coverage = analysis::coverage(&dump, &options)
            .map_err(|error| DumpError::NoReports(self.input, error))?;
        let columns = context.columns().unwrap_or(COLUMNS);
        match (self.json, self.markdown) {
            (true, _) => coverage::json::write(&coverage, &mut context.out.json()),
            (_, true) => coverage::write_markdown(&coverage, self.top, &mut context.out),
            _ => coverage::write_text(&coverage, self.top, columns, &mut context.out),
        }
        .and_then(|()| context.out.flush())?;
        Ok(ExitCode::SUCCESS)
    }
}

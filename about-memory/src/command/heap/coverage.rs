//! `about-memory heap coverage DUMP`: shows how much of the heap is reported exactly once.

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
    /// A dump that DMD wrote; `-` for standard input
    #[arg(value_name = "DUMP")]
    input: PathBuf,

    /// How many crates, types, fields and remedies to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Answer in JSON, with all crates, types, fields and remedies
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Answer in Markdown, for a comment or a page
    #[arg(long)]
    markdown: bool,

    /// How it is symbolicated.
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
        let dump = self.dump.reader().read(&self.input, context.notes)?;
        let mut options = ExplainOptions::default();
        options.root = folder::working_directory();
        let coverage = analysis::coverage(&dump, &options)
            .map_err(|error| DumpError::NoReports(self.input, error))?;
        let columns = context.columns().unwrap_or(COLUMNS);
        match (self.json, self.markdown) {
            (true, _) => coverage::json::write(&coverage, context.out),
            (_, true) => coverage::write_markdown(&coverage, self.top, context.out),
            _ => coverage::write_text(&coverage, self.top, columns, context.out),
        }
        .and_then(|()| context.out.flush())
        .map_err(Failure::answer)?;
        Ok(ExitCode::SUCCESS)
    }
}

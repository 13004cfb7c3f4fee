//! `about-memory diff A B`: shows the differences of two memory reports.

use super::present::{self, Presented};
use crate::command::flags::{DisplayArgs, candidates};
use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::InputArgs;
use crate::input::open;
use crate::render::show::markdown;
use crate::report::page::file_builder::Opened;
use crate::report::tree::Settings;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory diff A B`
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The earlier report; with `--since`, the later report or the pid of a running program
    #[arg(value_name = "A|PID|NAME", add = candidates::programs_and_files())]
    pub first: PathBuf,
    /// The later report, or the pid of a running program
    #[arg(value_name = "B|PID|NAME", add = candidates::programs_and_files(), required_unless_present = "since")]
    pub second: Option<PathBuf>,
    /// Show how A differs from this earlier report
    #[arg(long, value_name = "FILE", conflicts_with = "second")]
    pub since: Option<PathBuf>,
    /// Print a Markdown table of the largest changes, for a pull request
    #[arg(long, conflicts_with_all = ["json", "descriptions"])]
    pub markdown: bool,
    /// Flags of the display.
    #[command(flatten)]
    pub display: DisplayArgs,
    /// Flags of the reader of reports.
    #[command(flatten)]
    pub input: InputArgs,
}

impl DiffArgs {
    /// Shows the differences of two files.
    ///
    /// # Errors
    /// The files cannot be compared, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let settings = Settings { is_diff: true, ..self.display.settings() };
        let filter = self.display.filter()?;
        let (before, after) = match (&self.since, &self.second) {
            (Some(since), _) => (since, &self.first),
            (None, Some(second)) => (&self.first, second),
            (None, None) => return Err("name two reports, or one and --since".into()),
        };
        let pair = open::open_two([before, after], self.input.options())?;
        if self.markdown {
            let (notes, is_incomplete) = (pair.notes(), pair.is_incomplete());
            let changes = pair.changes(&filter)?;
            markdown::write(
                &changes,
                &settings,
                self.display.process.as_deref(),
                &mut context.out,
            )?;
            present::write_notes(notes, self.display.notes, context)?;
            return Ok(exit_code(is_incomplete));
        }
        let Opened { file, notes, is_incomplete } = pair.compare(filter, &settings)?;
        let presented = Presented { files: &[file], settings: &settings, notes };
        present::write(presented, &self.display, context)?;
        Ok(exit_code(is_incomplete))
    }
}

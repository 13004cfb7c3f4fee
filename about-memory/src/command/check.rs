//! `about-memory check FILE --budget BUDGET`: compares a report with the ceilings of a budget.

use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::InputArgs;
use crate::input::open;
use crate::render;
use crate::report::budget::{self, Budget};
use crate::report::filter::Filter;
use crate::report::tree::Settings;
use clap::Args;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory check FILE --budget BUDGET`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The report to check; `-` is standard input
    pub file: PathBuf,
    /// The budget, a TOML file: `[ceilings]` with lines like `"explicit/*/strings" = "5%"` or `=
    /// "64MB"`
    #[arg(long, value_name = "BUDGET")]
    pub budget: PathBuf,
    /// Set every ceiling of the budget to the value in this report; the rest of the file stays
    /// unchanged
    #[arg(long)]
    pub bless: bool,
    /// Flags of the reader of reports.
    #[command(flatten)]
    pub input: InputArgs,
}

impl CheckArgs {
    /// Compares a report with a budget. The exit status is 1 if anything is over, else 3 if the
    /// report is incomplete.
    ///
    /// # Errors
    /// A report or budget cannot be read, or a budget or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let name = self.budget.display();
        let text = fs::read_to_string(&self.budget).map_err(|error| format!("{name}: {error}"))?;
        let budget =
            Budget::parse(&text).map_err(|error| match std::error::Error::source(&error) {
                Some(cause) => format!("{name}: {error}: {cause}"),
                None => format!("{name}: {error}"),
            })?;
        let opened =
            open::open(&self.file, self.input.options(), Filter::All, &Settings::default())?;
        let verdict = budget.check(&opened.file.report_tree);
        for pattern in &verdict.unused {
            writeln!(context.notes, "note: no path matches the ceiling `{pattern}`")?;
        }
        for note in &opened.notes {
            writeln!(context.notes, "note: {note}")?;
        }
        if self.bless {
            fs::write(&self.budget, budget::bless(&text, &budget, &verdict)?)
                .map_err(|error| format!("{name}: {error}"))?;
            let changed = budget.ceilings.len() - verdict.unused.len();
            writeln!(
                context.out,
                "{name}: {changed} of {} ceilings set to what this report has",
                budget.ceilings.len()
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        render::check::write(&verdict, &mut context.out)?;
        Ok(match &verdict.over[..] {
            [] => exit_code(opened.is_incomplete),
            _ => ExitCode::from(1),
        })
    }
}

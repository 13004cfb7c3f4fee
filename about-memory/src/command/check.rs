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
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tempfile::NamedTempFile;

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
    /// Compares a report with a budget, or sets the budget. The exit status is 1 if anything is
    /// over, else 3 if the report is incomplete.
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
        let report = self.file.display();
        let verdict = budget.check(&opened.file.report_tree);
        let verdict = verdict.map_err(|error| format!("{report}: {error}"))?;
        for pattern in &verdict.unused {
            writeln!(context.notes, "note: no path matches the ceiling `{pattern}`")?;
        }
        for note in &opened.notes {
            writeln!(context.notes, "note: {note}")?;
        }
        if self.bless && opened.is_incomplete {
            writeln!(
                context.notes,
                "note: {name} stays unchanged: memory is missing from this report, so its ceilings would be too low; take a complete report"
            )?;
            return Ok(exit_code(true));
        }
        if self.bless {
            replace(&self.budget, &budget::bless(&text, &budget, &verdict)?)
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

/// Replaces a text file at once, so that it has the old or the new text whenever this ends. Keeps
/// its permissions, and a link to it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
    file.persist(&path)?;
    Ok(())
}

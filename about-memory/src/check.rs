//! `about-memory check FILE --budget BUDGET`.

use crate::budget::{self, Budget, Verdict};
use crate::cli::CheckArgs;
use crate::filter::Filter;
use crate::forest::shown_name;
use crate::open;
use crate::show::Failure;
use crate::tree::Settings;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

/// Compares a report with a budget: exit status 1 if anything is over.
///
/// # Errors
/// A report or budget that cannot be read, a budget that cannot be written, and those of `out`.
pub fn main(
    args: &CheckArgs,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let name = args.budget.display();
    let text = fs::read_to_string(&args.budget).map_err(|error| format!("{name}: {error}"))?;
    let budget = Budget::parse(&text).map_err(|error| match std::error::Error::source(&error) {
        Some(cause) => format!("{name}: {error}: {cause}"),
        None => format!("{name}: {error}"),
    })?;
    let opened = open::open(&args.file, args.input.options(), Filter::All, &Settings::default())?;
    let verdict = budget.check(&opened.file.forest);
    for pattern in &verdict.unused {
        writeln!(notes, "note: no path matches the ceiling `{pattern}`")?;
    }
    for note in &opened.notes {
        writeln!(notes, "note: {note}")?;
    }
    if args.bless {
        fs::write(&args.budget, budget::bless(&text, &budget, &verdict)?)
            .map_err(|error| format!("{name}: {error}"))?;
        let changed = budget.ceilings.len() - verdict.unused.len();
        writeln!(
            out,
            "{name}: {changed} of {} ceilings set to what this report has",
            budget.ceilings.len()
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    write_verdict(&verdict, out)?;
    Ok(if verdict.over.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn write_verdict(verdict: &Verdict, out: &mut dyn Write) -> io::Result<()> {
    let compared = verdict.compared;
    if verdict.over.is_empty() {
        return writeln!(
            out,
            "within budget: {compared} {} compared",
            if compared == 1 { "path" } else { "paths" }
        );
    }
    let mut table = Builder::default();
    table.push_record(["Process", "Path", "Amount", "Ceiling", "Over by", ""]);
    for over in &verdict.over {
        let excess = over.amount - over.ceiling;
        let share = numbers_share(excess, over.ceiling);
        table.push_record([
            over.process.clone(),
            shown_name(&over.path).into_owned(),
            over.print(over.amount),
            over.print(over.ceiling),
            over.print(excess),
            share,
        ]);
    }
    let mut table = table.build();
    table.with(Style::psql()).modify(Columns::new(2..), Alignment::right());
    writeln!(out, "{table}\n")?;
    let count = verdict.over.len();
    writeln!(
        out,
        "over budget: {count} of {compared} {}",
        if compared == 1 { "path" } else { "paths" }
    )
}

fn numbers_share(excess: f64, ceiling: f64) -> String {
    if ceiling > 0.0 { format!("+{:.1}%", 100.0 * excess / ceiling) } else { String::new() }
}

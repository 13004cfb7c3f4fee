//! Writes the largest changes as a Markdown table for a pull request.

use crate::report::amount::Amount;
use crate::report::diff::Change;
use crate::report::numbers::{self, Bytes, Unit};
use crate::report::report_tree::{Presence, shown_name};
use crate::report::tree::{Settings, Threshold};
use std::io::{self, Write};

/// The largest number of rows.
const ROWS: usize = 30;

/// Writes the changes, the largest first.
///
/// # Errors
/// The table cannot be written.
pub fn write(
    changes: &[Change],
    settings: &Settings,
    process: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let is_wanted = |change: &&Change| {
        process.is_none_or(|wanted| change.process.contains(wanted))
            && is_large(change, settings.threshold)
    };
    let wanted: Vec<&Change> = changes.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return writeln!(out, "No memory report changed.");
    }
    let names_process = wanted.iter().any(|change| change.process != wanted[0].process);
    let (head, line) = if names_process { ("| Process ", "|---") } else { ("", "") };
    writeln!(out, "{head}| Path | Before | After | Change | |\n{line}|---|--:|--:|--:|--:|")?;
    for change in wanted.iter().take(ROWS) {
        if names_process {
            write!(out, "| {} ", cell(&change.process))?;
        }
        write_row(change, settings.bytes.unwrap_or(Bytes::Auto), out)?;
    }
    match wanted.len().saturating_sub(ROWS) {
        0 => Ok(()),
        1 => writeln!(out, "\nand 1 smaller change"),
        more => writeln!(out, "\nand {more} smaller changes"),
    }
}

fn is_large(change: &Change, threshold: Option<Threshold>) -> bool {
    let difference = change.difference().abs();
    match threshold {
        None => true,
        Some(Threshold::Amount(threshold)) => difference >= threshold,
        Some(Threshold::Percent(percent)) => {
            difference * 100.0 >= percent * change.before.number().abs()
        }
    }
}

fn write_row(change: &Change, bytes: Bytes, out: &mut dyn Write) -> io::Result<()> {
    let value = |amount: &Amount| numbers::amount(amount, change.unit, bytes);
    let unless =
        |absent, amount| if change.presence == absent { "–".to_owned() } else { value(amount) };
    let difference = change.difference();
    let sign = if difference > 0.0 { "+" } else { "" };
    let relative = match change.presence {
        Presence::First => "gone".into(),
        Presence::Second => "new".into(),
        _ => {
            format!("{sign}{}", numbers::amount(&relative(change).into(), Unit::Percentage, bytes))
        }
    };
    writeln!(
        out,
        "| {} | {} | {} | {sign}{} | {relative} |",
        cell(&shown_name(&change.path)),
        unless(Presence::Second, &change.before),
        unless(Presence::First, &change.after),
        value(&difference.into()),
    )
}

/// Returns the change in hundredths of a percent.
fn relative(change: &Change) -> f64 {
    change.difference() / change.before.number().abs() * 10_000.0
}

/// Quotes text so that it stays in its cell.
fn cell(text: &str) -> String {
    let mut cell = String::from("`");
    for c in text.chars() {
        match c {
            '|' => cell.push_str("\\|"),
            '`' => cell.push('\''),
            c if c.is_control() => cell.push(' '),
            c => cell.push(c),
        }
    }
    cell + "`"
}

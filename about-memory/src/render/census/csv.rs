//! Writes a census as comma-separated values: a row for each innermost group, numbers without
//! commas.

use std::borrow::Cow;
use std::io::{self, Write};

use memreport_analysis::census::Amount;

use super::Shown;
use super::leaves::{leaves, questions};

/// Writes all rows, or the first ones and one for the rest. If each block is in one row, the rows
/// add up to the whole.
pub(crate) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let is_sampled = shown.census.is_sampled();
    let questions = questions(shown.census);
    for question in &questions {
        write!(out, "{},", quoted(question))?;
    }
    writeln!(
        out,
        "bytes,count,slop{}",
        if is_sampled { ",sampledBytes,sampledCount" } else { "" }
    )?;
    let mut leaves = leaves(shown.census);
    leaves.sort_by_key(|leaf| std::cmp::Reverse((leaf.amount.bytes, leaf.amount.count)));
    for leaf in leaves.iter().take(shown.top) {
        for at in 0..questions.len() {
            let text = leaf
                .keys
                .get(at)
                .map(memreport_analysis::census::Key::describe)
                .unwrap_or_default();
            write!(out, "{},", quoted(&text))?;
        }
        numbers(&leaf.amount, is_sampled, out)?;
    }
    let rest = leaves.get(shown.top..).unwrap_or_default();
    if !rest.is_empty() {
        let mut sum = Amount::default();
        rest.iter().for_each(|leaf| sum.add(&leaf.amount));
        let others = format!("({} more)", rest.len());
        let first = if questions.is_empty() { String::new() } else { others + "," };
        write!(out, "{first}{}", ",".repeat(questions.len().saturating_sub(1)))?;
        numbers(&sum, is_sampled, out)?;
    }
    Ok(())
}

fn numbers(amount: &Amount, is_sampled: bool, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{},{},{}", amount.bytes, amount.count, amount.slop)?;
    if is_sampled {
        write!(out, ",{},{}", amount.sampled_bytes, amount.sampled_count)?;
    }
    writeln!(out)
}

fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text.into()
}

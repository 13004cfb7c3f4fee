//! Writes the coverage of a heap as JSON.

use memreport_analysis::analysis::{Coverage, Group, Totals};
use memreport_analysis::read::FieldPlace;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes the whole coverage.
pub(crate) fn write(coverage: &Coverage, out: &mut dyn Write) -> io::Result<()> {
    let groups = |groups: &[Group]| -> Vec<Value> {
        let fields = |group: &Group| {
            json!({
                "name": group.name, "all": totals(&group.all), "dark": totals(&group.unreported),
                "twice": totals(&group.twice),
            })
        };
        groups.iter().map(fields).collect()
    };
    let field = |field: &FieldPlace| {
        let FieldPlace { type_name, field, file, line, reason, .. } = field;
        json!({ "type": type_name, "field": field, "file": file, "line": line, "reason": reason })
    };
    let remedies = coverage.suggestions.iter();
    let value = json!({
        "program": coverage.program,
        "score": coverage.score(),
        "exactlyOnceBytes": number(coverage.exactly_once()),
        "isSampled": coverage.is_sampled,
        "heap": totals(&coverage.heap),
        "once": totals(&coverage.once),
        "dark": totals(&coverage.unreported),
        "twice": totals(&coverage.twice),
        "leftOutBytes": number(coverage.under_reported),
        "untracked": { "blocks": coverage.untracked.blocks, "bytes": coverage.untracked.bytes },
        "crates": groups(&coverage.crates),
        "types": groups(&coverage.types),
        "reporters": groups(&coverage.reporters),
        "measured": coverage.measured.iter().map(field).collect::<Vec<_>>(),
        "skipped": coverage.skipped.iter().map(field).collect::<Vec<_>>(),
        "remedies": remedies
            .map(|suggestion| json!({ "remedy": suggestion.text, "bytes": number(suggestion.bytes) }))
            .collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn totals(totals: &Totals) -> Value {
    json!({ "bytes": number(totals.usable()), "blocks": number(totals.blocks) })
}

/// Converts to the range of JSON numbers that most readers accept.
fn number(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

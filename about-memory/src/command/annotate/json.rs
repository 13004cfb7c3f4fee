//! The patch of a program's source as JSON.

use super::patch::Patch;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes the patch with all its changes.
pub(crate) fn write(patch: &Patch, out: &mut dyn Write) -> io::Result<()> {
    let forecast = &patch.forecast;
    let changes = patch.changes.iter().map(|of| {
        json!({
            "kind": of.change.kind(),
            "subject": of.change.subject(),
            "file": of.file,
            "bytes": number(of.bytes),
            "why": of.why,
        })
    });
    let left = forecast
        .left
        .iter()
        .filter(|left| left.bytes > 0)
        .map(|left| json!({ "what": left.what, "bytes": number(left.bytes), "why": left.why }));
    let value = json!({
        "program": patch.program,
        "heap": number(forecast.heap),
        "classified": number(forecast.before),
        "predicted": number(forecast.after),
        "applied": patch.is_applied,
        "newer": patch.newer.iter().map(|file| file.to_string_lossy()).collect::<Value>(),
        "changes": changes.collect::<Value>(),
        "left": left.collect::<Value>(),
        "diff": diff(patch),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn diff(patch: &Patch) -> String {
    let mut text = String::new();
    for file in &patch.files {
        let _ = writeln!(text, "--- a/{0}\n+++ b/{0}", file.file);
        for part in &file.parts {
            let _ = writeln!(text, "{}", part.part.header);
            text.push_str(&part.part.lines);
        }
    }
    text
}

fn number(bytes: i128) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

//! Writes the patch of a program's source as a unified difference, with the bytes of each part.

use super::edits::Change;
use super::patch::{Patch, PatchChange};
use memreport_analysis::analysis::{commas, percent};
use std::io::{self, Write};

/// Writes the patch. Lines in front of a file begin with `#`, which `patch` and `git apply` skip.
pub(crate) fn write(patch: &Patch, out: &mut dyn Write) -> io::Result<()> {
    write_shares(patch, out)?;
    for left in patch.forecast.left.iter().filter(|left| left.bytes > 0) {
        writeln!(out, "# left: {} bytes, {}: {}", commas(left.bytes), left.what, left.why)?;
    }
    for file in &patch.files {
        writeln!(out, "--- a/{0}\n+++ b/{0}", file.file)?;
        for part in &file.parts {
            let changes = part.changes.iter().map(|&number| words(&patch.changes[number]));
            let changes: Vec<String> = changes.collect();
            writeln!(out, "{} {}", part.part.header, changes.join("; "))?;
            out.write_all(part.part.lines.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes the list of changes of a patch that is in the files now.
pub(crate) fn write_applied(patch: &Patch, out: &mut dyn Write) -> io::Result<()> {
    for file in &patch.files {
        writeln!(out, "{}", file.file)?;
        let mut numbers: Vec<usize> =
            file.parts.iter().flat_map(|part| part.changes.clone()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            writeln!(out, "  {}", words(&patch.changes[number]))?;
        }
    }
    write_shares(patch, out)?;
    for left in patch.forecast.left.iter().filter(|left| left.bytes > 0) {
        writeln!(out, "# left: {} bytes, {}: {}", commas(left.bytes), left.what, left.why)?;
    }
    Ok(())
}

fn write_shares(patch: &Patch, out: &mut dyn Write) -> io::Result<()> {
    let forecast = &patch.forecast;
    let share = |bytes: i128| percent(bytes, forecast.heap);
    writeln!(
        out,
        "# {}: {:.2} % of {} bytes are classified, {:.2} % with this patch, which compiles",
        patch.program,
        share(forecast.before),
        commas(forecast.heap),
        share(forecast.after)
    )
}

/// Returns a change in words, with its bytes.
fn words(of: &PatchChange) -> String {
    let subject = of.change.subject();
    let about = match &of.change {
        Change::Derive(_) => format!("derive for {subject}"),
        Change::Report(_) => format!("report {subject}"),
        Change::Ignore(_) => format!("skip {subject}"),
        Change::Measure(_) => format!("measure {subject}"),
        Change::Share(_) => format!("another field counts what {subject} shares"),
        Change::Feature(_) => format!("feature {subject} of memreport"),
        Change::Depend(_) => format!("{subject} depends on memreport"),
    };
    match &of.why {
        Some(why) => format!("{about}: {why}"),
        None => format!("{about}: {} bytes", commas(of.bytes)),
    }
}

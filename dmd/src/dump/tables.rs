//! Writes the trace table and the frame table of a dump.

use std::io::{self, Write};

use serde::Serialize;

use super::keys::{Base32, Keys, WordKey};
use super::modules::ModuleMap;
use crate::collect::Dump;
use crate::collect::findings::Report;
use crate::mem::sys::Module;
use crate::stack::site;

/// Writes a value as JSON.
pub(super) fn put(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer(out, value)?)
}

/// Writes the traces of all stacks and reports that have keys.
pub(super) fn write_traces(dump: &Dump, keys: &mut Keys, out: &mut impl Write) -> io::Result<()> {
    let mut separator = write_stacks(keys, out)?;
    for index in 0..keys.reports.len() {
        let Some((key, report)) = keys.reports.get(index) else { continue };
        let Some(report) = dump.report(report) else { continue };
        let frames: Vec<String> =
            report_words(report).map(|word| keys.word(word).to_string()).collect();
        write!(out, "{separator}\"{key}\":")?;
        separator = ",\n";
        put(out, &frames)?;
    }
    Ok(())
}

/// Writes the traces of all stacks that have keys. Returns the separator for the next trace.
pub(super) fn write_stacks(keys: &mut Keys, out: &mut impl Write) -> io::Result<&'static str> {
    let mut separator = "\n";
    let Keys { next, stacks, frames, .. } = keys;
    for (key, stack) in stacks.iter() {
        write!(out, "{separator}\"{key}\":[")?;
        separator = ",\n";
        let mut before = "";
        for address in site::frames(stack) {
            write!(out, "{before}\"{}\"", frames.key(address, next))?;
            before = ",";
        }
        out.write_all(b"]")?;
    }
    Ok(separator)
}

/// Returns the frames of a report trace: the field that leads to the block, then the reporter.
fn report_words(report: &Report) -> impl Iterator<Item = String> {
    let field = report.field.map(|field| {
        format!("{}.{} ({}:{})", field.owner(), field.name(), field.file(), field.line())
    });
    field.into_iter().chain([report.path.clone()])
}

/// Writes the description of each frame.
pub(super) fn write_frames(
    modules: &[Module],
    keys: &Keys,
    out: &mut impl Write,
) -> io::Result<()> {
    let map = ModuleMap::new(modules);
    let mut separator = "\n";
    let mut frame = |key: Base32, description: &str| {
        write!(out, "{separator}\"{key}\":")?;
        separator = ",\n";
        put(out, &format_args!("#00: {description}"))
    };
    for (key, address) in keys.frames.iter() {
        frame(key, &map.describe(address))?;
    }
    for WordKey { key, word } in &keys.words {
        frame(*key, word)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use memreport::Field;

    use super::*;

    #[test]
    fn a_report_has_the_field_that_leads_to_the_block_before_its_path() {
        const FIELD: &Field = &Field::of::<Vec<u8>>("bytes", "src/shop.rs", 7);
        let words = |field| {
            let report = Report { path: "explicit/shop".to_owned(), field };
            report_words(&report).collect::<Vec<_>>()
        };
        assert_eq!(words(None), ["explicit/shop"]);
        let of_field = "alloc::vec::Vec<u8>.bytes (src/shop.rs:7)";
        assert_eq!(words(Some(FIELD)), [of_field, "explicit/shop"]);
    }
}

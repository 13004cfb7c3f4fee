//! The records behind the summary: every place with its stack.

use std::io::{self, Write};

use super::model::{Explained, Place, WrongPlace};
use super::summary::write_summary;
use super::words::{bytes, count, kind_name, write_suggestion};
use crate::analysis::number::commas;
use crate::analysis::options::ExplainOptions;
use crate::analysis::records::Class;

/// Writes the summary and then the records.
///
/// # Errors
///
/// If writing fails.
pub fn write_explained(
    explained: &Explained,
    options: &ExplainOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_summary(explained, options, out)?;
    write_places(explained, options, out)
}

/// Writes the records behind the summary: doubles, unreported places, wrong reports, each with its
/// stack.
///
/// # Errors
///
/// If writing fails.
pub fn write_places(
    explained: &Explained,
    options: &ExplainOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    for class in [Class::TwiceReported, Class::Unreported, Class::Live, Class::Cumulative] {
        let places = explained.places(class);
        for (number, place) in (1..).zip(places.iter().take(options.top)) {
            writeln!(out, "{} {{", class.heading())?;
            write_place(place, number, places.len(), out)?;
            writeln!(out, "}}\n")?;
        }
    }
    for place in explained.wrong.iter().take(options.top) {
        write_wrong(place, out)?;
    }
    Ok(())
}

fn write_place(place: &Place, number: usize, of: usize, out: &mut dyn Write) -> io::Result<()> {
    let totals = place.totals;
    let blocks = count(totals.blocks, "block");
    writeln!(out, "  {blocks} at place {} of {}", commas(number as i128), commas(of as i128))?;
    let (requested, slop) = (commas(totals.req), commas(totals.slop));
    writeln!(out, "  {} ({requested} requested / {slop} slop)", bytes(totals.usable()))?;
    writeln!(out, "  {}", place.site.block_type.describe())?;
    write_frames("Allocated at", &place.site.frames, out)?;
    for (at, reporter) in place.reporters.iter().enumerate() {
        writeln!(out, "  {} by {reporter}", if at == 0 { "Reported" } else { "Reported again" })?;
    }
    write_suggestion("  ", place.suggestion.as_deref(), out)
}

fn write_frames(heading: &str, frames: &[String], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {heading} {{")?;
    for (number, frame) in (1..).zip(frames) {
        let number: usize = number;
        writeln!(out, "    #{number:02}: {frame}")?;
    }
    writeln!(out, "  }}")
}

fn write_wrong(place: &WrongPlace, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Wrong ({}) {{", kind_name(place.kind))?;
    writeln!(out, "  {}", count(place.num.into(), "report"))?;
    let block = if place.usable > 0 {
        format!(", the blocks have {}", bytes(place.usable))
    } else {
        String::new()
    };
    writeln!(out, "  {} claimed{block}; the first at 0x{}", bytes(place.claimed), place.addr)?;
    writeln!(out, "  Reported by {}", place.reporter)?;
    if let Some(site) = &place.site {
        writeln!(out, "  {}", site.block_type.describe())?;
        write_frames("Allocated at", &site.frames, out)?;
    }
    write_suggestion("  ", place.suggestion.as_deref(), out)?;
    writeln!(out, "}}\n")
}

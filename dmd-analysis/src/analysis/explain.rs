//! A dump in a few lines that a person can act on, then the records behind them.

use std::io::{self, Write};

use super::Class;
use super::number::{commas, percent};
use super::sites::{ExplainOptions, Explained, Place, WrongPlace};
use crate::read::{Estimate, Mode, Sampled, WrongKind};

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

/// Writes how much is dark, the biggest dark places in two lines each, doubles, wrong reports.
///
/// # Errors
///
/// If writing fails.
pub fn write_summary(
    explained: &Explained,
    options: &ExplainOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(main) = main_class(explained.mode) else { return Ok(()) };
    totals(explained, main, out)?;
    let places = explained.places(main);
    if !places.is_empty() {
        let what = if main == Class::Unreported { "dark" } else { "biggest" };
        let shown = places.len().min(options.top);
        writeln!(
            out,
            "\nThe {shown} biggest of {}:",
            count(places.len() as i128, &format!("{what} place"))
        )?;
        for (number, place) in (1..).zip(places.iter().take(options.top)) {
            summary_of_place(number, place, explained, out)?;
        }
    }
    let doubles = explained.places(Class::TwiceReported);
    if !doubles.is_empty() {
        writeln!(out, "\nReported twice:")?;
        for (number, place) in (1..).zip(doubles.iter().take(options.top)) {
            summary_of_double(number, place, out)?;
        }
        rest(doubles.len(), options.top, out)?;
    }
    if !explained.wrong.is_empty() {
        writeln!(out, "\nWrong reports:")?;
        for place in explained.wrong.iter().take(options.top) {
            writeln!(out, "  {}", wrong_line(place))?;
            write_remedy("     ", place.remedy.as_deref(), out)?;
        }
        rest(explained.wrong.len(), options.top, out)?;
    }
    writeln!(out)
}

/// The class that a dump is read for.
fn main_class(mode: Mode) -> Option<Class> {
    Some(match mode {
        Mode::DarkMatter => Class::Unreported,
        Mode::Live | Mode::Scan => Class::Live,
        Mode::Cumulative => Class::Cumulative,
    })
}

/// What is drawn for a sample.
fn draws(Sampled { sample_bytes, sample_probability, .. }: Sampled) -> String {
    let bytes = format!("one byte in {}", commas(sample_bytes.into()));
    let blocks = format!("each block with a probability of {sample_probability}");
    match (sample_bytes, sample_probability) {
        (_, 0.0) => bytes,
        (0, _) => blocks,
        _ => format!("{bytes} and {blocks}"),
    }
}

/// What the figures below are of, if not of all blocks.
fn preface(explained: &Explained, out: &mut dyn Write) -> io::Result<()> {
    let untracked = explained.untracked;
    if let Some(sampled) = explained.sampled {
        let Sampled { all, unreported, .. } = sampled;
        let estimate = |of: Estimate| {
            // Nineteen of twenty samples are no further off.
            format!("{} ± {} bytes", commas(rounded(of.bytes)), commas(rounded(2.0 * of.error)))
        };
        writeln!(
            out,
            "A profile: all figures are estimates from a sample, {}. Blocks made since it began have {}, of which {} \
             are dark.",
            draws(sampled),
            estimate(all),
            estimate(unreported)
        )
    } else if untracked.blocks > 0 {
        writeln!(
            out,
            "{} in {} are from before tracking began, or from while it was off, and in none of these figures.",
            bytes(untracked.bytes.into()),
            count(untracked.blocks.into(), "block")
        )
    } else {
        Ok(())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "an estimate, and the conversion saturates")]
fn rounded(number: f64) -> i128 {
    number.round() as i128
}

fn totals(explained: &Explained, main: Class, out: &mut dyn Write) -> io::Result<()> {
    preface(explained, out)?;
    let heap = explained.heap;
    let (bytes, blocks) = (bytes(heap.usable()), count(heap.blocks, "block"));
    if main != Class::Unreported {
        return writeln!(out, "{bytes} in {blocks} were recorded.");
    }
    let dark = explained.totals(main);
    let share = percent(dark.usable(), heap.usable());
    let number = count(dark.blocks, "block");
    writeln!(
        out,
        "{} of {bytes} ({share:.2}%) are dark: no reporter covers {number}.",
        commas(dark.usable())
    )?;
    let twice = explained.totals(Class::TwiceReported);
    let wrong: u64 = explained.wrong.iter().map(|place| place.num).sum();
    let doubles = match twice.blocks {
        0 => "Nothing is reported twice".to_owned(),
        number => format!(
            "{} in {} are reported twice",
            self::bytes(twice.usable()),
            count(number, "block")
        ),
    };
    let wrongs = match wrong {
        0 => "no report is wrong".to_owned(),
        number => format!("{} wrong", count_are(number.into(), "report")),
    };
    writeln!(out, "{doubles}; {wrongs}.")
}

fn summary_of_place(
    number: usize,
    place: &Place,
    explained: &Explained,
    out: &mut dyn Write,
) -> io::Result<()> {
    let totals = place.totals;
    let share = percent(totals.usable(), explained.heap.usable());
    let (bytes, blocks) = (bytes(totals.usable()), count(totals.blocks, "block"));
    let what = place.site.block_type.describe();
    writeln!(out, "{number:>3}. {bytes} in {blocks}, {share:.2}% of the heap: {what}")?;
    writeln!(out, "     {}", where_from(place))?;
    write_remedy("     ", place.remedy.as_deref(), out)
}

fn write_remedy(indent: &str, remedy: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    remedy.map_or(Ok(()), |remedy| writeln!(out, "{indent}→ {remedy}"))
}

/// The program's own frame, and through which crate it allocated.
fn where_from(place: &Place) -> String {
    let site = &place.site;
    let Some(frame) = site.own.as_ref().or(site.frames.first()) else {
        return "no stack was recorded".to_owned();
    };
    match &site.through {
        Some(krate) => format!("{frame}, through {krate}"),
        None => frame.clone(),
    }
}

fn summary_of_double(number: usize, place: &Place, out: &mut dyn Write) -> io::Result<()> {
    let (bytes, blocks) = (bytes(place.totals.usable()), count(place.totals.blocks, "block"));
    writeln!(out, "{number:>3}. {bytes} in {blocks}: {}", place.site.block_type.describe())?;
    writeln!(out, "     {}", where_from(place))?;
    for (at, reporter) in place.reporters.iter().enumerate() {
        writeln!(out, "     {} by {reporter}", if at == 0 { "reported" } else { "and again" })?;
    }
    write_remedy("     ", place.remedy.as_deref(), out)
}

fn rest(all: usize, top: usize, out: &mut dyn Write) -> io::Result<()> {
    if all > top {
        writeln!(out, "     … and {} more", commas((all - top) as i128))
    } else {
        Ok(())
    }
}

/// The name of a kind of wrong reports, as in the dump.
pub(crate) fn kind_name(kind: WrongKind) -> &'static str {
    match kind {
        WrongKind::NonHeap => "non-heap",
        WrongKind::Interior => "interior",
        WrongKind::Partial => "partial",
        WrongKind::FreedSince => "freed since",
        WrongKind::Other => "of an unknown kind",
    }
}

fn wrong_line(place: &WrongPlace) -> String {
    let reports = count(place.num.into(), "report");
    let claimed = bytes(place.claimed);
    let what = match place.kind {
        WrongKind::NonHeap => format!("of {claimed} that are in no heap block"),
        WrongKind::Interior => format!("of {claimed} that point into a block, not at its start"),
        WrongKind::Partial => format!("of {claimed} for blocks of {}", bytes(place.usable)),
        WrongKind::FreedSince => format!("of {claimed} in blocks that were freed before the dump"),
        WrongKind::Other => format!("of {claimed}"),
    };
    format!("{}: {reports} {what}, by {}", kind_name(place.kind), place.reporter)
}

/// Writes the records behind the summary: doubles, dark places, wrong reports, each with its stack.
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
    write_remedy("  ", place.remedy.as_deref(), out)
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
    write_remedy("  ", place.remedy.as_deref(), out)?;
    writeln!(out, "}}\n")
}

fn bytes(n: i128) -> String {
    count(n, "byte")
}

/// `1 block`, `2 blocks`.
fn count(n: i128, what: &str) -> String {
    format!("{} {what}{}", commas(n), if n == 1 { "" } else { "s" })
}

/// `1 report is`, `2 reports are`.
fn count_are(n: i128, what: &str) -> String {
    format!("{} {}", count(n, what), if n == 1 { "is" } else { "are" })
}

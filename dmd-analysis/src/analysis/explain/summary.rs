//! The summary of a dump, in a few lines that a person can act on.

use std::io::{self, Write};

use super::causes::{Cause, causes};
use super::model::{Explained, Place, WrongPlace};
use super::words::{bytes, count, count_are, kind_name, write_suggestion};
use crate::analysis::number::{commas, percent};
use crate::analysis::options::ExplainOptions;
use crate::analysis::records::Class;
use crate::read::{Estimate, Mode, Sampled, WrongKind};

/// Writes a summary: how much is unreported, the largest places in two lines each, doubles, wrong
/// reports.
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
        biggest(explained, main, options.top, out)?;
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
            write_suggestion("     ", place.suggestion.as_deref(), out)?;
        }
        rest(explained.wrong.len(), options.top, out)?;
    }
    writeln!(out)
}

/// Writes the largest places, those with one cause as one. Places under a thousandth of the heap
/// are only counted.
fn biggest(explained: &Explained, main: Class, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let what = if main == Class::Unreported { "unreported" } else { "biggest" };
    let places = explained.places(main);
    let heap = explained.heap.usable();
    let causes = causes(places);
    let is_worth_a_row = |cause: &&Cause<'_>| cause.totals.usable().saturating_mul(1000) >= heap;
    let shown = causes.iter().take(top).filter(is_worth_a_row).count();
    let all = count(places.len() as i128, &format!("{what} place"));
    if shown == 0 {
        writeln!(out, "\n{all}, each under 0.1% of the heap.")?;
        return Ok(());
    }
    writeln!(out, "\nThe {shown} biggest of {all}:")?;
    for (number, cause) in (1..).zip(&causes[..shown]) {
        summary_of_cause(number, cause, explained, out)?;
    }
    let rest = &causes[shown..];
    let others: usize = rest.iter().map(|cause| cause.places).sum();
    if others > 0 {
        let bytes: i128 = rest.iter().map(|cause| cause.totals.usable()).sum();
        let share = percent(bytes, heap);
        let (others, bytes) = (count(others as i128, "more place"), self::bytes(bytes));
        writeln!(out, "     … and {others} with {bytes}, {share:.2}% of the heap")?;
    }
    Ok(())
}

/// Returns the class that the summary of a dump of this mode is about.
fn main_class(mode: Mode) -> Option<Class> {
    Some(match mode {
        Mode::DarkMatter => Class::Unreported,
        Mode::Live | Mode::Scan => Class::Live,
        Mode::Cumulative => Class::Cumulative,
    })
}

/// Returns the sampling rate in words.
fn sampling_rate(Sampled { sample_bytes, sample_probability, .. }: Sampled) -> String {
    let bytes = format!("one byte in {}", commas(sample_bytes.into()));
    let blocks = format!("each block with a probability of {sample_probability}");
    match (sample_bytes, sample_probability) {
        (_, 0.0) => bytes,
        (0, _) => blocks,
        _ => format!("{bytes} and {blocks}"),
    }
}

/// Writes which blocks the figures below are about, if not all.
fn preface(explained: &Explained, out: &mut dyn Write) -> io::Result<()> {
    if let Some(sampled) = explained.sampled {
        let Sampled { all, unreported, .. } = sampled;
        let estimate = |of: Estimate| {
            // Two standard errors: 95 % of samples are this close.
            format!("{} ± {} bytes", commas(rounded(of.bytes)), commas(rounded(2.0 * of.error)))
        };
        writeln!(
            out,
            "A profile: all figures are estimates from a sample, {}. Blocks made since it began have {}, \
             of which {} are unreported.",
            sampling_rate(sampled),
            estimate(all),
            estimate(unreported)
        )
    } else {
        Ok(())
    }
}

/// Writes the line of untracked blocks, if there are any.
fn untracked(explained: &Explained, out: &mut dyn Write) -> io::Result<()> {
    let untracked = explained.untracked;
    if untracked.blocks == 0 {
        return Ok(());
    }
    let about = if explained.sampled.is_some() { "About " } else { "" };
    writeln!(
        out,
        "{about}{} in {}, {:.2}% of the heap, are from before tracking began or while it was off: nothing else was \
         recorded of them.",
        bytes(untracked.bytes.into()),
        count(untracked.blocks.into(), "block"),
        percent(untracked.bytes.into(), explained.heap.usable())
    )
}

#[expect(clippy::cast_possible_truncation, reason = "an estimate, and the conversion saturates")]
fn rounded(number: f64) -> i128 {
    number.round() as i128
}

fn totals(explained: &Explained, main: Class, out: &mut dyn Write) -> io::Result<()> {
    preface(explained, out)?;
    untracked(explained, out)?;
    let heap = explained.heap;
    let bytes = bytes(heap.usable());
    if main != Class::Unreported {
        let recorded = heap.minus(&explained.untracked.into());
        let (bytes, blocks) = (self::bytes(recorded.usable()), count(recorded.blocks, "block"));
        return writeln!(out, "{bytes} in {blocks} were recorded.");
    }
    let unreported = explained.totals(main);
    let share = percent(unreported.usable(), heap.usable());
    let number = count(unreported.blocks, "block");
    writeln!(
        out,
        "{} of {bytes} ({share:.2}%) are unreported: no reporter covers {number}.",
        commas(unreported.usable())
    )?;
    let twice = explained.totals(Class::TwiceReported);
    let wrong: i128 = explained.wrong.iter().map(|place| i128::from(place.num)).sum();
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
        number => format!("{} wrong", count_are(number, "report")),
    };
    writeln!(out, "{doubles}; {wrongs}.")
}

fn summary_of_cause(
    number: usize,
    cause: &Cause<'_>,
    explained: &Explained,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Cause { first, totals, places, has_several_types } = cause;
    let share = percent(totals.usable(), explained.heap.usable());
    let (bytes, blocks) = (bytes(totals.usable()), count(totals.blocks, "block"));
    let what = first.site.block_type.describe();
    let types = if *has_several_types { " and other types" } else { "" };
    writeln!(out, "{number:>3}. {bytes} in {blocks}, {share:.2}% of the heap: {what}{types}")?;
    let others = match places - 1 {
        0 => String::new(),
        others => format!(", and {} alike", count(others as i128, "place")),
    };
    writeln!(out, "     {}{others}", where_from(first))?;
    write_suggestion("     ", first.suggestion.as_deref(), out)
}

/// Returns the program's own frame, and the crate through which it allocated.
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
    write_suggestion("     ", place.suggestion.as_deref(), out)
}

fn rest(all: usize, top: usize, out: &mut dyn Write) -> io::Result<()> {
    if all > top {
        writeln!(out, "     … and {} more", commas((all - top) as i128))
    } else {
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_bytes_blocks_or_both() {
        let table = [
            (524_288, 0.0, "one byte in 524,288"),
            (0, 0.25, "each block with a probability of 0.25"),
            (4096, 0.5, "one byte in 4,096 and each block with a probability of 0.5"),
        ];
        for (sample_bytes, sample_probability, expected) in table {
            let sampled = Sampled { sample_bytes, sample_probability, ..Sampled::default() };
            assert_eq!(sampling_rate(sampled), expected);
        }
    }
}

//! Writes the summary of a recording as text.

use std::io::{self, Write};

use memreport_analysis::recording::{Estimate, Recording, Sums, Which};
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

use crate::report::amount::Amount;
use crate::report::numbers::{self, Bytes, Unit};

/// The largest number of marks shown.
const MARKS: usize = 20;

/// Returns the heading of the places of the chosen blocks.
pub(crate) fn heading(which: Which) -> &'static str {
    match which {
        Which::Allocated => "All that was allocated, by where",
        Which::Retained => "What lived at the end, by where it was allocated",
        Which::AtPeak => "What lived at the peak, by where it was allocated",
        Which::Freed => "What was freed, by where it was freed",
        _ => "What was freed within a millisecond, by where it was allocated",
    }
}

/// Writes the summary.
pub(crate) fn write(recording: &Recording, sums: &Sums, out: &mut dyn Write) -> io::Result<()> {
    let program = recording.program.as_deref().unwrap_or("a program");
    let name = program.rsplit('/').next().unwrap_or(program);
    writeln!(out, "{name} (pid {}), {}", recording.pid, time(recording.length))?;
    if let Some(sentence) = recording.incomplete() {
        writeln!(out, "{sentence}")?;
    }
    let every = if recording.is_whole { "Every block was recorded" } else { "Blocks recorded" };
    match recording.sample_bytes {
        None => writeln!(out, "{every}: {}.", count(recording.block_count))?,
        Some(bytes) => writeln!(
            out,
            "One byte in {} was drawn, and its block recorded: {}. What follows from them has its standard error beside it.",
            numbers::amount(&whole(bytes), Unit::Count, Bytes::Plain),
            count(recording.block_count)
        )?,
    }
    write_sums(recording, out)?;
    write_choices(sums, out)?;
    write_lifetimes(sums, out)?;
    if !recording.marks.is_empty() {
        writeln!(out, "\nMarks:")?;
    }
    for mark in recording.marks.iter().take(MARKS) {
        writeln!(out, "  {:>9}  {words}", time(mark.time), words = mark.text)?;
    }
    if recording.marks.len() > MARKS {
        writeln!(out, "  … and {} more", recording.marks.len() - MARKS)?;
    }
    Ok(())
}

/// Writes the exact sums, which the allocator counts.
fn write_sums(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let (Some((first, last)), Some(peak)) = (recording.ends(), recording.peak()) else {
        return Ok(());
    };
    // The sums of a damaged file may fall.
    let allocated = last.allocated_bytes.saturating_sub(first.allocated_bytes);
    let blocks = last.allocations.saturating_sub(first.allocations);
    writeln!(
        out,
        "\nExactly: {} allocated in {} blocks; live {} at first, {} at most{} (after {}), {} at last; resident {} -> {}.",
        megabytes(&whole(allocated)),
        numbers::amount(&whole(blocks), Unit::Count, Bytes::Plain),
        megabytes(&whole(first.live_bytes())),
        megabytes(&whole(peak.bytes)),
        if peak.is_exact { "" } else { " in these sums" },
        time(peak.time),
        megabytes(&whole(last.live_bytes())),
        megabytes(&whole(first.resident)),
        megabytes(&whole(last.resident)),
    )
}

fn write_choices(sums: &Sums, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Builder::default();
    table.push_record(["blocks recorded", "bytes", "", "blocks"]);
    for (name, sum) in [
        ("allocated", &sums.allocated),
        ("alive at the peak", &sums.at_peak),
        ("alive at the end", &sums.retained),
        ("gone within a millisecond", &sums.temporary),
    ] {
        let [bytes, error, blocks] = columns(sum);
        table.push_record([name.to_owned(), bytes, error, blocks]);
    }
    writeln!(out, "\n{}", drawn(table))
}

fn write_lifetimes(sums: &Sums, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Builder::default();
    table.push_record(["lived", "bytes", "", "blocks"]);
    for class in &sums.lifetimes {
        let name = match class.to {
            None => "to the end".to_owned(),
            Some(u64::MAX) => format!("{} or more", time(class.from)),
            Some(to) => format!("less than {}", time(to)),
        };
        let [bytes, error, blocks] = columns(&class.sum);
        table.push_record([name, bytes, error, blocks]);
    }
    writeln!(out, "\n{}", drawn(table))
}

fn columns(sum: &Estimate) -> [String; 3] {
    let error = sum.error();
    let spread = if error > 0.0 {
        format!("± {}", megabytes(&Amount::Number(error)))
    } else {
        String::new()
    };
    let blocks = numbers::amount(&Amount::Number(sum.blocks.round()), Unit::Count, Bytes::Plain);
    [megabytes(&Amount::Number(sum.bytes)), spread, blocks]
}

fn drawn(table: Builder) -> String {
    let mut table = table.build();
    table.with(Style::blank());
    table.modify(Columns::new(1..), Alignment::right());
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn count(blocks: u64) -> String {
    format!("{blocks} {}", if blocks == 1 { "block" } else { "blocks" })
}

#[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
fn whole(number: u64) -> Amount {
    Amount::Number(number as f64)
}

fn megabytes(amount: &Amount) -> String {
    numbers::amount(amount, Unit::Bytes, Bytes::Mb)
}

/// Formats a time: `1 ms`, `2.5 s`, `1 min`.
fn time(microseconds: u64) -> String {
    match microseconds {
        0..1_000_000 => format!("{} ms", microseconds / 1000),
        60_000_000 => "1 min".to_owned(),
        _ => format!("{}.{} s", microseconds / 1_000_000, microseconds / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_of_blocks_has_a_heading() {
        for (which, words) in [
            (Which::Allocated, "All that was allocated,"),
            (Which::Retained, "What lived at the end,"),
            (Which::AtPeak, "What lived at the peak,"),
            (Which::Freed, "What was freed, by where it was freed"),
            (Which::Temporary, "What was freed within a millisecond,"),
        ] {
            assert!(heading(which).starts_with(words), "{which:?}: {}", heading(which));
        }
    }

    #[test]
    fn times_have_the_largest_unit_that_fits() {
        for (microseconds, text) in [
            (0, "0 ms"),
            (999_999, "999 ms"),
            (1_000_000, "1.0 s"),
            (59_990_000, "59.9 s"),
            (60_000_000, "1 min"),
            (61_500_000, "61.5 s"),
        ] {
            assert_eq!(time(microseconds), text);
        }
    }
}

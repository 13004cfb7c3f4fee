//! Writes the explanation of resident memory as text.

use crate::report::amount::Amount;
use crate::report::numbers::{self, Bytes, Unit};
use crate::report::resident::verdict::time;
use crate::report::resident::{Explanation, Line};
use std::io::{self, Write};

/// The columns of a line: name, bytes, growth, source.
type Row = [String; 4];

/// The smallest width of a name; a narrower terminal wraps lines.
const MIN_NAME: usize = 24;

/// Writes the text for this width.
///
/// # Errors
/// The text cannot be written.
pub fn write(explanation: &Explanation, columns: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", head(explanation))?;
    writeln!(out, "{}\n", wrap(&explanation.verdict.sentence, columns))?;
    let sums = rows(explanation);
    let rows = || sums.iter().flatten();
    let width = |column: usize| rows().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let fixed: usize = widths[1..].iter().map(|width| width + 2).sum();
    let name = widths[0].min(columns.saturating_sub(fixed).max(MIN_NAME));
    for rows in &sums {
        for [what, bytes, growth, source] in rows {
            let what = shorten(what, name);
            let mut line = format!("{what:name$}  {bytes:>width$}", width = widths[1]);
            // There is no growth with one snapshot.
            if widths[2] > 0 {
                line += &format!("  {growth:>width$}", width = widths[2]);
            }
            line += &format!("  {source}");
            writeln!(out, "{}", line.trim_end())?;
        }
        writeln!(out)?;
    }
    for note in &explanation.notes {
        writeln!(out, "{}", wrap(&format!("note: {note}"), columns))?;
    }
    Ok(())
}

/// Returns the lines of each sum, with the headings of the columns above the first.
fn rows(explanation: &Explanation) -> Vec<Vec<Row>> {
    let change = if explanation.snapshots.0 > 1 { "change" } else { "" };
    let mut above = vec![["", "now", change, "from"].map(str::to_owned)];
    let mut sums = Vec::new();
    for sum in &explanation.sums {
        let mut rows = std::mem::take(&mut above);
        let [_, figures @ ..] = row("", &sum.whole);
        let [bytes, growth, source] = figures;
        rows.push([format!("{} {}", sum.whole.0.name, sum.by), bytes, growth, source]);
        let shown = sum.parts.iter().filter(|(line, growth)| is_shown(line, *growth));
        rows.extend(
            shown.enumerate().map(|(index, part)| row(if index == 0 { "= " } else { "+ " }, part)),
        );
        sums.push(rows);
    }
    sums
}

/// Returns the title.
pub(crate) fn head(explanation: &Explanation) -> String {
    let (number, span) = explanation.snapshots;
    let over = span.map(|span| format!(" over {}", time(span))).unwrap_or_default();
    let snapshots = if number == 1 { "snapshot" } else { "snapshots" };
    format!("Resident memory of {}: {number} {snapshots}{over}", explanation.process)
}

/// Returns whether a part is shown: it was or is more than nothing.
pub(crate) fn is_shown(line: &Line, growth: Option<i64>) -> bool {
    line.bytes != 0 || growth.unwrap_or(0) != 0
}

/// Formats bytes, with commas.
pub(crate) fn size(bytes: i64) -> String {
    // A double represents sizes of memory exactly.
    numbers::amount(&Amount::Number(bytes as f64), Unit::Bytes, Bytes::Plain)
}

/// Formats bytes, always with a sign.
pub(crate) fn signed(bytes: i64) -> String {
    format!("{}{}", if bytes > 0 { "+" } else { "" }, size(bytes))
}

fn row(before: &str, (line, growth): &(Line, Option<i64>)) -> Row {
    [
        format!("{before}{}", line.name),
        size(line.bytes),
        growth.map(signed).unwrap_or_default(),
        line.source.to_owned(),
    ]
}

/// Replaces the middle of a long text by an ellipsis.
fn shorten(text: &str, columns: usize) -> String {
    memreport_analysis::analysis::shorten(text, columns)
}

/// Wraps a sentence between words.
fn wrap(sentence: &str, columns: usize) -> String {
    let mut lines = vec![String::new()];
    for word in sentence.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > columns {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::report::resident::snapshot::tests::snapshot;
    use insta::assert_snapshot;

    pub(in super::super) fn explanation() -> Explanation {
        let heap = |allocated: i64, cache: i64| {
            format!(
                "resident 2 {}\nrss/program/p 2 3000000\nrss/stacks 2 12288\nrss/anonymous/unnamed 2 {}\n
                 heap-committed/allocated 2 {allocated}\nheap-committed/overhead 2 150000\n
                 explicit/heap-overhead/bin-unused 0 150000\nheap-allocated 2 {allocated}\n
                 explicit/cache/a-name-that-is-long 1 {cache}\nexplicit/<b>&\\\\ 1 77",
                allocated + 3_200_000,
                allocated + 180_000,
            )
        };
        Explanation::new(vec![
            snapshot(12, &heap(90_000_000, 88_000_000)),
            snapshot(2, &heap(20_000_000, 18_000_000)),
        ])
    }

    #[test]
    fn it_is_one_page() {
        let mut out = Vec::new();
        write(&explanation(), 80, &mut out).unwrap();
        assert_snapshot!(String::from_utf8(out).unwrap(), @r"
Resident memory of server (pid 7): 2 snapshots over 10 min

explicit/cache grew by 66.76 MiB in 10 min, 100% of what resident memory grew
by: its reporter names it, so it is that structure, and neither a leak that is
not reported nor the allocator

                                      now         change  from
resident by kind of memory   93,200,000 B  +70,000,000 B  /proc/self/statm
= program file                3,000,000 B            0 B  /proc/self/smaps
+ stacks of threads              12,288 B            0 B  /proc/self/smaps
+ heap-committed, in memory  90,150,000 B  +70,000,000 B  at most, by allocator
+ other anonymous mappings       30,000 B            0 B  /proc/self/smaps
+ not explained                   7,712 B            0 B  what is left

heap-committed by residence  90,150,000 B  +70,000,000 B  allocator
= in memory                  90,150,000 B  +70,000,000 B  as above

heap-committed by use        90,150,000 B  +70,000,000 B  allocator
= heap-allocated             90,000,000 B  +70,000,000 B  counters
+ free among blocks             150,000 B            0 B  allocator

heap-allocated by reporter   90,000,000 B  +70,000,000 B  counters
= explicit/cache             88,000,000 B  +70,000,000 B  reporter
+ explicit/<b>&/                     77 B            0 B  reporter
+ dark matter                 1,999,923 B            0 B  by subtraction
");
    }

    #[test]
    fn one_snapshot_has_no_changes() {
        let explanation =
            Explanation::new(vec![snapshot(0, "resident 2 20\nrss/stacks 2 5\nrss/files/f 2 15")]);
        let mut out = Vec::new();
        write(&explanation, 80, &mut out).unwrap();
        assert_snapshot!(String::from_utf8(out).unwrap(), @r"
Resident memory of server (pid 7): 1 snapshot

nothing unusual in this snapshot of 20 B resident; a second one, taken later,
tells what grows

                             now  from
resident by kind of memory  20 B  /proc/self/statm
= other mapped files        15 B  /proc/self/smaps
+ stacks of threads          5 B  /proc/self/smaps

note: not all files say what the allocator has committed
");
    }

    #[test]
    fn lines_fit_and_add_up() {
        for columns in [80, 100, 200] {
            let mut out = Vec::new();
            write(&explanation(), columns, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        }
        for sum in explanation().sums {
            let (bytes, growth) = sum.parts.iter().fold((0, 0), |sums, (line, growth)| {
                (sums.0 + line.bytes, sums.1 + growth.unwrap())
            });
            assert_eq!((bytes, Some(growth)), (sum.whole.0.bytes, sum.whole.1));
        }
    }
}

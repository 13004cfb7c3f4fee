//! Writes a census as a table: a row for each innermost group, most bytes first.

use std::io::{self, Write};

use memreport_analysis::analysis::{commas, shorten};
use memreport_analysis::census::{Amount, Key};
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

use super::Shown;
use super::leaves::{Leaf, leaves, questions};

/// The smallest width of a name.
const MIN_NAME: usize = 12;

/// Lines of a stack in a cell.
const FRAMES: usize = 3;

/// Writes the first rows, and the rest as one.
pub(crate) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let questions = questions(shown.census);
    let mut leaves = leaves(shown.census);
    leaves.sort_by_key(|leaf| std::cmp::Reverse((leaf.amount.bytes, leaf.amount.count)));
    let (first, rest) = leaves.split_at(shown.top.min(leaves.len()));
    let mut rows: Vec<Vec<String>> =
        first.iter().map(|leaf| figures(shown, &leaf.amount)).collect();
    if !rest.is_empty() {
        let mut sum = Amount::default();
        rest.iter().for_each(|leaf| sum.add(&leaf.amount));
        rows.push(figures(shown, &sum));
    }
    let heads = heads(shown);
    let room = room(shown, &questions, (&heads, &rows));
    let mut table = Builder::default();
    table
        .push_record(heads.iter().cloned().chain(questions.iter().map(|name| shorten(name, room))));
    for (leaf, figures) in first.iter().zip(&rows) {
        let cells = (0..questions.len()).map(|at| cell(leaf, at, room));
        table.push_record(figures.iter().cloned().chain(cells));
    }
    if let (Some(figures), false) = (rows.last(), rest.is_empty()) {
        let more = format!("… {} more", commas(rest.len() as i128));
        table.push_record(figures.iter().cloned().chain([shorten(&more, room)]));
    }
    let mut table = table.build();
    table.with(Style::psql()).modify(Columns::new(..heads.len()), Alignment::right());
    writeln!(out, "{}\n", shown.head())?;
    for line in table.to_string().lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn heads(shown: &Shown<'_>) -> Vec<String> {
    let heads: &[&str] = if shown.census.is_difference() {
        &["bytes", "blocks"]
    } else {
        &["bytes", "share", "blocks"]
    };
    heads.iter().map(|&head| head.to_owned()).collect()
}

fn figures(shown: &Shown<'_>, amount: &Amount) -> Vec<String> {
    let bytes = [shown.number(amount.bytes)].into_iter();
    bytes.chain(shown.share(amount.bytes)).chain([shown.number(amount.count)]).collect()
}

/// Returns the columns for a name.
fn room(
    shown: &Shown<'_>,
    questions: &[String],
    (heads, rows): (&[String], &[Vec<String>]),
) -> usize {
    let width = |at: usize| {
        let cells = rows.iter().map(|row| &row[at]).chain([&heads[at]]);
        // A blank on each side, and a line.
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0) + 3
    };
    let taken: usize = (0..heads.len()).map(width).sum();
    let left = shown.columns.saturating_sub(taken) / questions.len().max(1);
    left.saturating_sub(3).max(MIN_NAME)
}

fn cell(leaf: &Leaf, at: usize, room: usize) -> String {
    match leaf.keys.get(at) {
        None => String::new(),
        Some(Key::Stack(frames)) => {
            let mut lines: Vec<String> =
                frames.iter().take(FRAMES).map(|frame| shorten(frame, room)).collect();
            if frames.len() > FRAMES {
                lines.push(format!("… {} more", frames.len() - FRAMES));
            }
            lines.join("\n")
        }
        Some(key) => shorten(&key.describe(), room),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use memreport_analysis::census::{Breakdown, FileOptions, of_dump};
    use memreport_analysis::read::read_slice;

    use super::*;

    #[test]
    fn a_cell_has_a_line_for_each_of_the_first_frames() {
        let frames: Vec<Arc<str>> =
            ["alloc::vec::push", "shop::load", "shop::main", "_start"].map(Arc::from).into();
        let table = [
            (1, "alloc::vec::push"),
            (2, "alloc::vec::push\nshop::load"),
            (3, "alloc::vec::push\nshop::load\nshop::main"),
            (4, "alloc::vec::push\nshop::load\nshop::main\n… 1 more"),
        ];
        for (depth, expected) in table {
            let keys = vec![Key::Stack(frames[..depth].into()), Key::Fixed("unknown")];
            let leaf = Leaf { keys, amount: Amount::default() };
            assert_eq!(cell(&leaf, 0, 16), expected);
            assert_eq!(cell(&leaf, 1, 6), "unk…wn");
            assert_eq!(cell(&leaf, 2, 16), "");
        }
    }

    #[test]
    fn names_share_the_columns_beside_the_figures() {
        let dump = r#"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"live"},"blockList":[],"traceTable":{},"frameTable":{}}"#;
        let dump = read_slice(dump.as_bytes()).expect("it is a dump");
        let census = of_dump(&dump, &Breakdown::default(), &FileOptions::default());
        let shown = |columns| Shown { census: &census, of: "shop".into(), top: 10, columns };
        let texts =
            |texts: &[&str]| -> Vec<String> { texts.iter().map(|&text| text.to_owned()).collect() };
        // With a blank on each side and a line, these take 10, 8 and 9 columns.
        let (heads, rows) =
            (texts(&["bytes", "share", "blocks"]), [texts(&["120,000", "1%", "9"])]);
        let table = [
            (100, &["type"][..], 100 - 27 - 3),
            (100, &["type", "stack"], (100 - 27) / 2 - 3),
            (100, &[], 100 - 27 - 3),
            (44, &["type"], 14),
            (42, &["type"], MIN_NAME),
            (0, &["type"], MIN_NAME),
        ];
        for (columns, questions, expected) in table {
            let found = room(&shown(columns), &texts(questions), (&heads, &rows));
            assert_eq!(found, expected, "{questions:?} in {columns}");
        }
    }
}

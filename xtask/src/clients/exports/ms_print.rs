//! Valgrind's `ms_print`.

use std::path::Path;
use std::process::Command;

use super::subject::Subject;
use super::{Bench, Client, equal, run};
use crate::failure::Failure;
use crate::on_path;

pub(crate) const CLIENT: Client = Client {
    name: "ms-print",
    needs: |_| on_path::find(&["ms_print"], "valgrind").map(|_| ()),
    check,
};

fn check(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
    // A file of two snapshots.
    let file = bench.export(&[subject, subject], "massif", &[])?;
    let text = printed(&file)?;
    for number in ["0", "1"] {
        equal("a snapshot", &snapshot(&text, number), &Some(subject.sums.bytes))?;
    }
    let Some(recorded) = &subject.recorded else { return Ok(()) };
    // The peak is at its stated place, and the last snapshot is the end.
    let text = printed(&bench.export(&[subject], "massif", &[])?)?;
    let peak = text.lines().find_map(|line| {
        let numbers = line.trim_start().strip_prefix("Detailed snapshots: [")?;
        let peak = numbers.split(", ").find(|number| number.contains("(peak)"))?;
        peak.split(' ').next()
    });
    let peak = peak.ok_or("ms_print names no peak")?;
    equal("the peak", &snapshot(&text, peak), &Some(recorded.at_peak))?;
    let last = text.lines().find_map(|line| line.strip_prefix("Number of snapshots: "));
    let last = last.and_then(|count| Some(count.parse::<i64>().ok()? - 1)).unwrap_or(0);
    equal("the end", &snapshot(&text, &last.to_string()), &Some(subject.sums.bytes))
}

fn printed(file: &Path) -> Result<String, Failure> {
    run(Command::new(on_path::find(&["ms_print"], "valgrind")?).arg(file))
}

/// Returns the bytes of a snapshot, if they equal its useful heap plus its extra heap.
fn snapshot(text: &str, number: &str) -> Option<i64> {
    let row = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = row.into_iter().find(|row| row.len() == 6 && row[0] == number)?;
    let column = |at: usize| row.get(at)?.replace(',', "").parse::<i64>().ok();
    let (total, heap, extra) = (column(2)?, column(3)?, column(4)?);
    (heap + extra == total).then_some(total)
}

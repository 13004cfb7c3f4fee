//! Valgrind's `ms_print`.

use std::process::Command;

use super::subject::Subject;
use super::{Bench, Client, equal, run};
use crate::{Failure, on_path};

pub(super) const CLIENT: Client = Client {
    name: "ms-print",
    needs: |_| on_path::find(&["ms_print"], "valgrind").map(|_| ()),
    check,
};

fn check(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
    // Two snapshots, as of a program that was looked at twice.
    let file = bench.export(&[subject, subject], "massif", &[])?;
    let text = run(Command::new(on_path::find(&["ms_print"], "valgrind")?).arg(file))?;
    for number in ["0", "1"] {
        let row = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = row.into_iter().find(|row| row.len() == 6 && row[0] == number);
        let column = |at: usize| {
            let digits = row.as_ref()?.get(at)?.replace(',', "");
            digits.parse::<i64>().ok()
        };
        equal("total", &column(2), &Some(subject.sums.bytes))?;
        let parts = column(3).zip(column(4)).map(|(heap, extra)| heap + extra);
        equal("useful and extra heap", &parts, &Some(subject.sums.bytes))?;
    }
    Ok(())
}

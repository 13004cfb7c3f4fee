//! Writes the list of running programs as a table or JSON.

use crate::render::terminal_text::line;
use crate::report::amount::Amount;
use crate::report::numbers::{self, Bytes, Unit};
use crate::report::unclassified::HeapSums;
use memreport::serve::protocol::Status;
use serde_json::json;
use std::io::{self, Write};
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

/// A running program.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) pid: u32,
    pub(crate) status: Status,
    /// The sums of its report, or the reason why they are not known.
    pub(crate) measured: Result<HeapSums, String>,
}

/// The columns of the table.
const COLUMNS: &[Column] = &[
    Column { name: "pid", is_number: true, cell: |row| row.pid.to_string() },
    Column { name: "name", is_number: false, cell: |row| line(&row.status.name).into_owned() },
    Column { name: "resident", is_number: true, cell: |row| megabytes(row.status.resident) },
    Column { name: "heap", is_number: true, cell: |row| megabytes(row.status.heap_allocated) },
    Column { name: "unclassified", is_number: true, cell: unclassified },
    Column {
        name: "tracking",
        is_number: false,
        cell: |row| line(&row.status.tracking).into_owned(),
    },
];

struct Column {
    name: &'static str,
    /// True if it is aligned to the right.
    is_number: bool,
    /// Returns the text of a row.
    cell: fn(&Row) -> String,
}

/// Writes the rows as a table.
pub(crate) fn write_text(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", table(rows))
}

/// Writes the rows as a JSON array.
pub(crate) fn write_json(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &rows.iter().map(wire).collect::<Vec<_>>())?;
    writeln!(out)
}

fn table(rows: &[Row]) -> String {
    let mut table = Builder::default();
    table.push_record(COLUMNS.iter().map(|column| column.name));
    for row in rows {
        table.push_record(COLUMNS.iter().map(|column| (column.cell)(row)));
    }
    let mut table = table.build();
    table.with(Style::blank());
    for (at, _) in COLUMNS.iter().enumerate().filter(|(_, column)| column.is_number) {
        table.modify(Columns::one(at), Alignment::right());
    }
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Returns the unreported share of the heap, or the reason why it is not known.
fn unclassified(row: &Row) -> String {
    match &row.measured {
        Ok(sums) => match sums.share() {
            None => "not known".to_owned(),
            Some(share) if sums.is_incomplete() => format!("{share:.2}% or missed"),
            Some(share) => format!("{share:.2}%"),
        },
        Err(why) => line(why).into_owned(),
    }
}

fn megabytes(bytes: Option<u64>) -> String {
    #[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
    let amount = bytes.map(|bytes| Amount::Number(bytes as f64));
    amount.map_or_else(
        || "not known".to_owned(),
        |amount| numbers::amount(&amount, Unit::Bytes, Bytes::Mb),
    )
}

fn wire(row: &Row) -> serde_json::Value {
    let status = &row.status;
    let sums = row.measured.as_ref().ok();
    let of = |is_incomplete: bool| {
        sums.filter(|sums| sums.is_incomplete() == is_incomplete).and_then(HeapSums::unclassified)
    };
    json!({
        "pid": row.pid,
        "name": status.name,
        "resident": status.resident,
        "heapAllocated": status.heap_allocated,
        "heapBlocks": status.heap_blocks,
        "heapUnclassified": of(false),
        "heapUnclassifiedOrMissed": of(true),
        "notes": sums.map_or(&[][..], HeapSums::notes),
        "tracking": status.tracking,
        "saved": status.saved,
        "commands": status.commands.iter().map(|command| &command.name).collect::<Vec<_>>(),
    })
}

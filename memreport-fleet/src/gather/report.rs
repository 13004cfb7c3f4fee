//! Rows of a memory report.

use std::error::Error;

use memreport::snapshot::HEAP_UNCLASSIFIED_OR_MISSED;
use memreport::snapshot::read::{self, Entry, NumericEntry, Options, ReadError, Sink};

use super::{Batch, Figures, Snapshot, Source};
use crate::table::Value;

/// A line of a report.
struct Line {
    /// Empty for the writer of the report.
    process: String,
    path: String,
    kind: &'static str,
    unit: &'static str,
    amount: i64,
}

/// The lines of a report while they are read.
#[derive(Default)]
struct Lines(Vec<Line>);

impl Sink for Lines {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        // A line without numbers adds nothing to a sum.
        let Some(NumericEntry { process, kind, units, amount }) = entry.numbers() else {
            return Ok(());
        };
        let kind = match kind {
            0.0 => "nonheap",
            1.0 => "heap",
            _ => "other",
        };
        let unit = match units {
            0.0 => "bytes",
            1.0 => "count",
            2.0 => "cumulative",
            3.0 => "percent",
            _ => return Ok(()),
        };
        let (process, path) = (process.to_owned(), entry.path.to_owned());
        self.0.push(Line { process, path, kind, unit, amount });
        Ok(())
    }
}

/// Adds the rows of a report.
pub(super) fn add(batch: &mut Batch, snapshot: &Snapshot, bytes: &[u8]) -> Result<(), ReadError> {
    let mut lines = Lines::default();
    let header = read::read(&mut &bytes[..], Options::default(), &mut lines)?;
    let writer = header.own.process.as_ref().map(|process| match process.pid {
        Some(pid) => format!("{} (pid {pid})", process.name),
        None => process.name.clone(),
    });
    for line in &mut lines.0 {
        let is_writer = match &writer {
            Some(writer) => line.process == *writer,
            // Firefox does not state which process wrote the file.
            None => line.process.starts_with("Main Process"),
        };
        if is_writer {
            line.process.clear();
        }
    }
    for Line { process, path, kind, unit, amount } in &lines.0 {
        let texts = [process.as_str(), path.as_str(), kind, unit].map(Value::Text);
        batch.reports.push(&snapshot.row(texts.into_iter().chain([Value::Int(*amount)])));
    }
    let mut figures = figures(&lines.0);
    figures.is_incomplete = Some(!header.own.missed.is_empty());
    figures.is_estimate = Some(false);
    figures.allocator = header.own.allocator;
    if let Some(process) = header.own.process {
        figures.program = Some(process.name);
        figures.pid = process.pid;
        figures.start_ms = process.start_ms;
    }
    batch.add_snapshot(snapshot, Source::Report, &figures);
    Ok(())
}

/// Returns the sums of the process that wrote the report.
fn figures(lines: &[Line]) -> Figures {
    let mut figures = Figures::default();
    let (mut explicit, mut heap, mut has_unclassified) = (None, 0_i64, false);
    let add =
        |sum: &mut Option<i64>, amount| *sum = Some(sum.unwrap_or(0_i64).saturating_add(amount));
    let mut allocated = None;
    for Line { path, kind, amount, .. } in lines.iter().filter(|line| line.process.is_empty()) {
        let amount = *amount;
        match path.as_str() {
            "resident" => add(&mut figures.resident, amount),
            "resident-peak" => add(&mut figures.resident_peak, amount),
            "vsize" => add(&mut figures.virtual_bytes, amount),
            "threads" => add(&mut figures.threads, amount),
            "heap-allocated" => add(&mut allocated, amount),
            "heap-allocations" => add(&mut figures.heap_blocks, amount),
            "heap-committed/overhead" => add(&mut figures.heap_overhead, amount),
            _ => {}
        }
        if path.starts_with("heap-committed/") {
            add(&mut figures.heap_committed, amount);
        }
        if path.starts_with("explicit/") {
            add(&mut explicit, amount);
            has_unclassified |= path == "explicit/heap-unclassified";
            if *kind == "heap" && path != HEAP_UNCLASSIFIED_OR_MISSED {
                heap = heap.saturating_add(amount);
            }
        }
    }
    let is_missed = lines.iter().any(|line| line.path == HEAP_UNCLASSIFIED_OR_MISSED);
    let unnamed = allocated.map(|all| all.saturating_sub(heap));
    // As in the tree of a viewer: what no line names is part of `explicit`.
    let added = unnamed.filter(|_| !has_unclassified && !is_missed).unwrap_or(0);
    figures.explicit = explicit.map(|sum| sum.saturating_add(added));
    figures.heap_unclassified = unnamed;
    figures.heap_allocated = allocated.and_then(|bytes| u64::try_from(bytes).ok());
    figures
}

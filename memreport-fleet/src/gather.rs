//! Turns reports, dumps and recordings into rows.

mod blocks;
mod recording;
mod report;
mod snapshot;

pub(crate) use blocks::{borrowed, text as frame_text};
pub use snapshot::{Figures, Snapshot, Source};

use memreport::snapshot::read::ReadError;
use memreport_analysis::analysis::{ClampError, ExplainOptions, NoReports};
use memreport_analysis::axis::Axis;
use memreport_analysis::export::{Heap, HeapOptions, History};
use memreport_analysis::heap::history::HistoryError;
use memreport_analysis::read::{Dump, Mode};
use memreport_analysis::retention::Retention;
use std::collections::HashSet;

use crate::schema::{BLOCKS, REPORTS, RETENTION, SNAPSHOTS, STACKS, TIMELINE, Table};
use crate::table::{Rows, Value};

/// Rows of all tables that belong into one partition: of one service, version, date and host.
#[derive(Debug)]
pub struct Batch {
    pub(crate) stacks: Rows,
    pub(crate) reports: Rows,
    pub(crate) blocks: Rows,
    pub(crate) retention: Rows,
    pub(crate) timeline: Rows,
    pub(crate) snapshots: Rows,
    /// The stacks that have a row.
    known: HashSet<i64>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            stacks: Rows::new(&STACKS),
            reports: Rows::new(&REPORTS),
            blocks: Rows::new(&BLOCKS),
            retention: Rows::new(&RETENTION),
            timeline: Rows::new(&TIMELINE),
            snapshots: Rows::new(&SNAPSHOTS),
            known: HashSet::new(),
        }
    }
}

impl Batch {
    /// Adds the rows of a memory report.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are no report. Rows that precede the defect stay.
    pub fn add_report(&mut self, snapshot: &Snapshot, bytes: &[u8]) -> Result<(), ReadError> {
        report::add(self, snapshot, bytes)
    }

    /// Adds the rows of a dump, whose frames may be symbolicated.
    ///
    /// # Errors
    ///
    /// Returns an error if the dump is a scan and damaged.
    pub fn add_dump(&mut self, snapshot: &Snapshot, dump: &Dump) -> Result<(), ClampError> {
        let mut options = HeapOptions::default();
        options.ages = true;
        // All classes of blocks are kept, so there is no error.
        let heap = Heap::new(dump, &options).map_err(|NoReports| ClampError::NotScan)?;
        let extension = dump.extension.as_ref();
        let mut figures = Figures {
            is_estimate: Some(extension.is_some_and(|ours| ours.sampled.is_some())),
            is_incomplete: Some(false),
            heap_allocated: extension.and_then(|ours| ours.heap_allocated),
            tracker: extension.and_then(|ours| ours.tracker_bytes),
            ..Figures::of_heap(&heap)
        };
        let start = snapshot.time_ms.checked_sub(heap.uptime_ms());
        figures.start_ms = start.filter(|_| heap.uptime_ms() > 0);
        blocks::add(self, snapshot, &heap);
        if dump.invocation.mode == Mode::Scan {
            self.add_retention(snapshot, dump)?;
        }
        self.add_snapshot(snapshot, Source::Dump, &figures);
        Ok(())
    }

    /// Adds the rows of a recording: its timeline, and the blocks at its end.
    ///
    /// # Errors
    ///
    /// If the file of the recording cannot be read.
    pub fn add_recording(
        &mut self,
        snapshot: &Snapshot,
        history: &History,
    ) -> Result<(), HistoryError> {
        recording::add(self, snapshot, history)
    }

    fn add_retention(&mut self, snapshot: &Snapshot, dump: &Dump) -> Result<(), ClampError> {
        /// The most types that have a row: those that retain most.
        const TYPES: usize = 500;
        let options = ExplainOptions::default();
        let retention = Retention::new(dump, &options)?;
        let (groups, _) = retention.groups(&Axis::Type, TYPES);
        retention.check_words()?;
        for group in groups {
            let numbers =
                [group.blocks, group.own, group.retained].map(|number| Some(number).into());
            self.retention.push(
                &snapshot.row(
                    [Value::Text("type"), Value::Text(&group.name)].into_iter().chain(numbers),
                ),
            );
        }
        Ok(())
    }

    fn add_snapshot(&mut self, snapshot: &Snapshot, source: Source, figures: &Figures) {
        self.snapshots.push(&snapshot.snapshot_row(source, figures));
    }

    /// Returns the rows of each table that has any, in the order in which files are shipped.
    pub fn into_tables(self) -> impl Iterator<Item = (&'static Table, Rows)> {
        let Batch { stacks, reports, blocks, retention, timeline, snapshots, known: _ } = self;
        let all = [stacks, reports, blocks, retention, timeline, snapshots];
        all.into_iter().filter(|rows| !rows.is_empty()).map(|rows| (rows.table(), rows))
    }

    /// Returns the number of rows of all tables.
    #[must_use]
    pub fn row_count(&self) -> usize {
        [
            &self.stacks,
            &self.reports,
            &self.blocks,
            &self.retention,
            &self.timeline,
            &self.snapshots,
        ]
        .iter()
        .map(|rows| rows.len())
        .sum()
    }
}

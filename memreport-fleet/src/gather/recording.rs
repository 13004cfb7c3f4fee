//! Rows of a recording.

use memreport_analysis::export::{HeapOptions, History};
use memreport_analysis::heap::history::HistoryError;

use super::{Batch, Figures, Snapshot, Source, blocks};
use crate::table::Value;

/// Adds the timeline, and the blocks at the end with all that were allocated.
pub(super) fn add(
    batch: &mut Batch,
    snapshot: &Snapshot,
    history: &History,
) -> Result<(), HistoryError> {
    let recording = history.recording();
    let heap = history.heap_and_allocated(recording.length, &HeapOptions::default())?;
    for point in &recording.timeline {
        let numbers = [
            point.time,
            point.allocated_bytes,
            point.allocations,
            point.freed_bytes,
            point.frees,
            point.resident,
        ];
        let numbers = numbers.map(|number| Value::from(Some(number)));
        batch.timeline.push(&snapshot.row(numbers));
    }
    let last = recording.timeline.last();
    let number = |number: u64| i64::try_from(number).ok();
    let mut figures = Figures {
        start_ms: None,
        is_estimate: Some(recording.sample_bytes.is_some()),
        is_incomplete: Some(!recording.is_whole),
        resident: last.and_then(|point| number(point.resident)),
        heap_allocated: last.map(memreport_analysis::recording::Point::live_bytes),
        heap_blocks: last.and_then(|point| number(point.allocations.saturating_sub(point.frees))),
        ..Figures::of_heap(&heap)
    };
    // Rows count allocated blocks too; the sums of a snapshot are of live ones.
    let live = heap.groups().filter_map(|group| group.live);
    let (count, bytes) =
        live.fold((0, 0), |(blocks, bytes), live| (blocks + live.blocks, bytes + live.usable()));
    figures.listed_blocks = Some(super::snapshot::whole(count));
    figures.listed_bytes = Some(super::snapshot::whole(bytes));
    blocks::add(batch, snapshot, &heap);
    batch.add_snapshot(snapshot, Source::Recording, &figures);
    Ok(())
}

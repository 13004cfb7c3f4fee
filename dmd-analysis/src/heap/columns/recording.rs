//! A recording as columns: its sums over time, and how the blocks of each row changed in each of
//! many intervals. From these the page adds up the heap at the end of any interval.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::Key;
use super::call_tree::CallTree;
use crate::heap::HeapOptions;
use crate::heap::history::{History, HistoryError, Layout};
use crate::recording::{Block, Mark, Point, Recording, RecordingError};

/// The largest number of points of the sums over time.
const POINTS: usize = 2_000;

/// The bytes and blocks of a row that were allocated and freed in an interval.
#[derive(Clone, Copy, Default)]
struct Change {
    made: f64,
    freed: f64,
    made_blocks: f64,
    freed_blocks: f64,
}

/// The place of a change: interval, then row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    interval: usize,
    row: usize,
}

impl History {
    /// Returns the recording as JSON, with the changes in this number of intervals of equal length.
    ///
    /// Bytes are as in [`History::heap`]: the sum of the changes up to the end of an interval is
    /// the heap at that time. So are blocks, which of a sampled recording are fractions: rounded in
    /// each interval, their sum would drift.
    ///
    /// # Errors
    ///
    /// The same as those of [`heap`](Self::heap).
    pub fn columns(&self, intervals: u32, options: &HeapOptions) -> Result<Value, HistoryError> {
        let layout = self.layout(options)?;
        let recording = self.recording();
        let ends = ends(recording.length, intervals);
        let mut calls = CallTree::default();
        let stacks = calls.stacks(&layout.heap);
        let Changes { rows, changes, at_peak } = self.changes(&layout, &stacks, &ends)?;
        let column = |value: fn(&Key) -> Value| rows.iter().map(value).collect::<Vec<_>>();
        let changed = |value: fn(&Place, &Change) -> Value| {
            changes.iter().map(|(place, change)| value(place, change)).collect::<Vec<_>>()
        };
        Ok(json!({
            "summary": summary(recording),
            "points": points(&recording.timeline),
            "marks": recording.marks.iter().map(mark).collect::<Vec<_>>(),
            "ends": ends,
            "calls": calls.to_json(),
            "scopes": layout.heap.scopes,
            "texts": layout.heap.texts,
            "rows": {
                "stack": column(|key| json!(key.stack)),
                "type": column(|key| json!(key.block_type)),
                "scope": column(|key| json!(key.scope)),
                "thread": column(|key| json!(key.thread)),
            },
            "changes": {
                "interval": changed(|place, _| json!(place.interval)),
                "row": changed(|place, _| json!(place.row)),
                "made": changed(|_, change| json!(whole(change.made))),
                "freed": changed(|_, change| json!(whole(change.freed))),
                "madeBlocks": changed(|_, change| thousandths(change.made_blocks)),
                "freedBlocks": changed(|_, change| thousandths(change.freed_blocks)),
            },
            "atPeak": {
                "row": at_peak.keys().collect::<Vec<_>>(),
                "bytes": at_peak.values().map(|sum| whole(sum.made)).collect::<Vec<_>>(),
                "blocks": at_peak.values().map(|sum| whole(sum.made_blocks)).collect::<Vec<_>>(),
            },
        }))
    }
}

/// The rows of a recording, with their changes and with their blocks at the peak.
#[derive(Default)]
struct Changes {
    rows: Vec<Key>,
    changes: BTreeMap<Place, Change>,
    at_peak: BTreeMap<usize, Change>,
}

impl History {
    /// Sums up what each interval, by its end, made and freed.
    fn changes(
        &self,
        layout: &Layout,
        stacks: &[u32],
        ends: &[u64],
    ) -> Result<Changes, RecordingError> {
        let recording = self.recording();
        let mut all = Changes::default();
        let mut numbers: FxHashMap<Key, usize> = FxHashMap::default();
        let interval = |time: u64| ends.partition_point(|end| *end < time).min(ends.len() - 1);
        let peak = recording.peak();
        recording.each_block(|block| {
            let kind = &layout.kinds[self.site(block)];
            let key = Key::new(kind, stacks[kind.stack as usize]);
            let row = *numbers.entry(key).or_insert_with(|| {
                all.rows.push(key);
                all.rows.len() - 1
            });
            let made = Place { interval: interval(block.allocated_at), row };
            all.changes.entry(made).or_default().make(block);
            if let Some(freed) = block.freed {
                let freed = Place { interval: interval(freed.time), row };
                all.changes.entry(freed).or_default().free(block);
            }
            if peak.as_ref().is_some_and(|peak| recording.lives_at(block, peak.time)) {
                all.at_peak.entry(row).or_default().make(block);
            }
        })?;
        Ok(all)
    }
}

impl Change {
    fn make(&mut self, block: &Block) {
        self.made += block.bytes();
        self.made_blocks += block.weight;
    }

    fn free(&mut self, block: &Block) {
        self.freed += block.bytes();
        self.freed_blocks += block.weight;
    }
}

/// Returns the ends of the intervals, in microseconds since the beginning: the last is the length.
fn ends(length: u64, intervals: u32) -> Vec<u64> {
    let intervals = u64::from(intervals.max(1)).min(length.max(1));
    let end = |number: u64| {
        u64::try_from(u128::from(length) * u128::from(number) / u128::from(intervals))
            .unwrap_or(length)
    };
    (1..=intervals).map(end).collect()
}

fn summary(recording: &Recording) -> Value {
    json!({
        "program": recording.program,
        "pid": recording.pid,
        "startedMs": recording.started_ms,
        "length": recording.length,
        "sampleBytes": recording.sample_bytes,
        "incomplete": recording.incomplete(),
        "peak": recording.peak().map(|peak| {
            json!({ "time": peak.time, "live": peak.bytes, "isExact": peak.is_exact })
        }),
    })
}

/// Returns the sums over time as columns. Of many points, those with the most live bytes stay.
fn points(timeline: &[Point]) -> Value {
    let size = timeline.len().div_ceil(POINTS).max(1);
    let kept: Vec<&Point> = timeline
        .chunks(size)
        .filter_map(|chunk| chunk.iter().max_by_key(|point| point.live_bytes()))
        .collect();
    let column =
        |value: fn(&Point) -> u64| kept.iter().map(|point| value(point)).collect::<Vec<_>>();
    json!({
        "time": column(|point| point.time),
        "live": column(Point::live_bytes),
        "resident": column(|point| point.resident),
        "allocations": column(|point| point.allocations),
        "frees": column(|point| point.frees),
    })
}

fn mark(mark: &Mark) -> Value {
    json!({ "time": mark.time, "text": mark.text })
}

#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn whole(sum: f64) -> i64 {
    sum.round() as i64
}

/// Returns a number of blocks to three decimals, and a whole one without any to save space.
fn thousandths(blocks: f64) -> Value {
    let rounded = (blocks * 1000.0).round() / 1000.0;
    if rounded.fract() == 0.0 { json!(whole(rounded)) } else { json!(rounded) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::history::tests::history;

    #[test]
    fn intervals_add_up_to_the_heap_of_their_ends() {
        let history = history();
        let options = HeapOptions::default();
        for intervals in [1, 3, 100] {
            let columns = history.columns(intervals, &options).unwrap();
            let changes = &columns["changes"];
            let column = |name: &str| -> Vec<i64> {
                changes[name].as_array().unwrap().iter().filter_map(Value::as_i64).collect()
            };
            let [of, made, freed] = ["interval", "made", "freed"].map(column);
            let blocks = |name: &str| -> Vec<f64> {
                changes[name].as_array().unwrap().iter().filter_map(Value::as_f64).collect()
            };
            let [made_blocks, freed_blocks] = ["madeBlocks", "freedBlocks"].map(blocks);
            assert!(made_blocks.iter().any(|blocks| blocks.fract() != 0.0), "{made_blocks:?}");
            let ends = columns["ends"].as_array().unwrap();
            assert_eq!(ends.last().unwrap(), history.recording().length);
            for (at, end) in (0_i64..).zip(ends) {
                let lines: Vec<usize> = (0..of.len()).filter(|line| of[*line] <= at).collect();
                let live: i64 = lines.iter().map(|line| made[*line] - freed[*line]).sum();
                let blocks: f64 =
                    lines.iter().map(|line| made_blocks[*line] - freed_blocks[*line]).sum();
                let totals = history.heap(end.as_u64().unwrap(), &options).unwrap().totals();
                assert_eq!(i128::from(live), totals.usable(), "{intervals}: {end}");
                assert_eq!(i128::from(whole(blocks)), totals.blocks, "{intervals}: {end}");
            }
        }
    }

    #[test]
    fn of_many_points_the_highest_stay() {
        let timeline: Vec<Point> = (0..10_000)
            .map(|time| Point { time, allocated_bytes: time % 1_000, ..Point::default() })
            .collect();
        let points = points(&timeline);
        let live = points["live"].as_array().unwrap();
        assert_eq!(live.len(), POINTS);
        assert_eq!(live.iter().filter_map(Value::as_u64).max(), Some(999));
    }
}

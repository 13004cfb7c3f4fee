//! A recording in the Firefox Profiler: memory over time, marks, allocations and frees of blocks.
//!
//! Every thread of the program is a thread of the profile, with the blocks that it allocated and
//! their frees, on whichever thread those happened. Before them is a thread for the process with
//! the blocks of all: the profiler pairs a block with its free only within a thread. A free has its
//! stack if the recording contains it, and otherwise the name of its thread.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::tables::Tables;
use super::{meta, thread};
use crate::axis::thread_text;
use crate::export::unreadable;
use crate::heap::history::{History, Layout};
use crate::heap::{HeapFrame, HeapOptions, Kind};
use crate::recording::{Block, Cycle, Point, Recording, RecordingError, Which};

/// Writes recordings, each of a process, as one profile.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write(histories: &[History], options: &HeapOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut profile = Profile::default();
    let recordings = || histories.iter().map(History::recording);
    // Times of the profile count from the beginning of the first recording.
    let started = recordings().map(|recording| recording.started_ms).min().unwrap_or(0);
    for history in histories {
        let layout = history.layout(options).map_err(unreadable)?;
        profile.add(history, &layout, started).map_err(unreadable)?;
    }
    let names: Vec<&str> = recordings().map(name).collect();
    let Profile { tables, counters, threads } = profile;
    let product = format!("{} (heap over time)", names.join(", "));
    let mut meta = meta(&product, started, threads.len());
    meta["categories"] = json!([{ "name": "Other", "color": "grey", "subcategories": ["Other"] }]);
    meta["markerSchema"] = marker_schema();
    let file =
        WireProfile { meta, libs: [], pages: [], counters, shared: tables.into_json(), threads };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)
}

#[derive(Serialize)]
struct WireProfile {
    meta: Value,
    libs: [(); 0],
    pages: [(); 0],
    counters: Vec<Value>,
    shared: Value,
    threads: Vec<WireThread>,
}

#[derive(Serialize)]
struct WireThread {
    #[serde(flatten)]
    thread: Value,
    /// `None` if there are none: with an empty table the profiler has no range of time.
    #[serde(rename = "nativeAllocations", skip_serializing_if = "Option::is_none")]
    blocks: Option<WireBlocks>,
    /// Allocations with their types; `None` as above, and on the threads of the program.
    #[serde(rename = "jsAllocations", skip_serializing_if = "Option::is_none")]
    types: Option<WireTypes>,
}

/// Allocations in the table that the profiler has for JavaScript objects, which has types.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WireTypes {
    /// In milliseconds.
    time: Vec<f64>,
    /// The Rust types.
    class_name: Vec<String>,
    type_name: Vec<&'static str>,
    coarse_type: Vec<&'static str>,
    /// Bytes.
    weight: Vec<i64>,
    weight_type: &'static str,
    in_nursery: Vec<bool>,
    stack: Vec<Option<u32>>,
    length: usize,
}

/// Allocations and frees of blocks, in the order of time.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WireBlocks {
    /// In milliseconds.
    time: Vec<f64>,
    /// Bytes; negative where a block is freed.
    weight: Vec<i64>,
    weight_type: &'static str,
    stack: Vec<Option<u32>>,
    /// The numbers of blocks, which identify them: addresses are reused.
    memory_address: Vec<usize>,
    /// The thread of the allocation or the free.
    thread_id: Vec<u32>,
    length: usize,
}

/// A profile under construction.
#[derive(Default)]
struct Profile {
    tables: Tables,
    counters: Vec<Value>,
    threads: Vec<WireThread>,
}

/// The only category.
const OTHER: u32 = 0;

impl Profile {
    fn add(
        &mut self,
        history: &History,
        layout: &Layout,
        started: u64,
    ) -> Result<(), RecordingError> {
        let recording = history.recording();
        let every = recording.blocks(Which::Allocated)?;
        let begins =
            milliseconds(recording.started_ms.saturating_sub(started).saturating_mul(1000));
        self.counters.push(counter(recording, begins, self.threads.len()));
        let stacks = self.stacks(history, layout, &every);
        let all = blocks(recording, &every, begins, &stacks, None);
        let mut process = thread(name(recording), recording.pid, self.threads.len());
        process["name"] = format!("{}, all threads", name(recording)).into();
        process["isMainThread"] = true.into();
        process["tid"] = format!("{} all", recording.pid).into();
        process["samples"] = no_samples();
        process["markers"] = self.markers(recording, begins);
        let types = all.as_ref().map(|_| types(history, layout, &every, begins, &stacks));
        self.threads.push(WireThread { thread: process, blocks: all, types });
        for (number, of) in &recording.threads {
            let mut thread = thread(name(recording), recording.pid, self.threads.len());
            thread["name"] = thread_name(recording, *number).into();
            thread["isMainThread"] = false.into();
            thread["tid"] = of.tid.into();
            thread["samples"] = no_samples();
            let blocks = blocks(recording, &every, begins, &stacks, Some(*number));
            self.threads.push(WireThread { thread, blocks, types: None });
        }
        Ok(())
    }

    /// Adds the stacks of all allocations and frees to the tables.
    fn stacks(&mut self, history: &History, layout: &Layout, every: &[Block]) -> Stacks {
        let recording = history.recording();
        let stack = |kind: &Kind| self.tables.stack(layout.heap.stack(kind.stack).rev(), OTHER);
        let by_place: Vec<_> = layout.kinds.iter().map(stack).collect();
        let allocations = every.iter().map(|block| by_place[history.site(block)]).collect();
        let free = |block| history.free_site(block).and_then(|place| by_place[place]);
        let frees = match recording.has_free_stacks {
            true => every.iter().map(free).collect(),
            false => Vec::new(),
        };
        let threads: std::collections::BTreeSet<u32> =
            every.iter().filter_map(|block| Some(block.freed?.thread)).collect();
        let mut freed_by = FxHashMap::default();
        for thread in threads {
            let function = format!("(freed by {})", thread_name(recording, thread));
            let frame = HeapFrame {
                name: function.clone(),
                function,
                file: None,
                line: None,
                inlined: false,
                address: None,
                library: None,
            };
            freed_by.insert(thread, self.tables.stack(std::iter::once(&frame), OTHER));
        }
        Stacks { allocations, frees, freed_by }
    }

    fn markers(&mut self, recording: &Recording, begins: f64) -> Value {
        let whole = json!({
            "type": "Recording", "sampled": sampled(recording), "lost": recording.lost,
        });
        let ends = begins + milliseconds(recording.length);
        // The profiler shows the whole time of a marker, but not of a counter.
        let mut markers =
            vec![Marker { name: "Recording", start: begins, end: Some(ends), data: whole }];
        if let Some(peak) = recording.peak() {
            let data = json!({ "type": "HeapPeak", "live": peak.bytes });
            let start = begins + milliseconds(peak.time);
            markers.push(Marker { name: "Peak", start, end: None, data });
        }
        for crate::recording::Mark { time, text: words, cycle } in &recording.marks {
            if let Some(cycle) = cycle {
                markers.append(&mut cycle_markers(cycle, begins));
                continue;
            }
            let name = match words.split_once(": ") {
                Some(("report", _)) => "Memory report",
                Some(("minimize", _)) => "Minimize",
                _ => "Mark",
            };
            let data = json!({ "type": "HeapMark", "words": words });
            let start = begins + milliseconds(*time);
            markers.push(Marker { name, start, end: None, data });
        }
        let names: Vec<u32> =
            markers.iter().map(|marker| self.tables.string(marker.name.to_owned())).collect();
        json!({
            "data": markers.iter().map(|marker| &marker.data).collect::<Vec<_>>(),
            "name": names,
            "startTime": markers.iter().map(|marker| marker.start).collect::<Vec<_>>(),
            "endTime": markers.iter().map(|marker| marker.end).collect::<Vec<_>>(),
            // 0 is a moment, 1 is a range of time.
            "phase": markers.iter().map(|marker| u32::from(marker.end.is_some())).collect::<Vec<_>>(),
            "category": vec![OTHER; markers.len()],
            "length": markers.len(),
        })
    }
}

/// Returns an interval for a cycle and one for each of its slices.
fn cycle_markers(cycle: &Cycle, begins: f64) -> Vec<Marker> {
    let Some((first, last)) = cycle.slices.first().zip(cycle.slices.last()) else {
        return Vec::new();
    };
    let interval = |name, start: u64, end: u64, data| {
        let (start, end) = (begins + milliseconds(start), Some(begins + milliseconds(end)));
        Marker { name, start, end, data }
    };
    let whole = json!({
        "type": "MemoryCycle", "reason": cycle.reason, "slices": cycle.slices.len(),
        "nonincremental": cycle.nonincremental_reason,
    });
    let slices = cycle.slices.iter().map(|slice| {
        let data = json!({ "type": "MemorySlice", "reason": cycle.reason });
        interval("Memory slice", slice.start, slice.end, data)
    });
    std::iter::once(interval("Memory cycle", first.start, last.end, whole)).chain(slices).collect()
}

/// A marker of the profile.
struct Marker {
    name: &'static str,
    /// In milliseconds.
    start: f64,
    /// In milliseconds; `None` for a moment.
    end: Option<f64>,
    data: Value,
}

/// The allocation or the free of a block. Allocations come before frees of the same moment.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    /// In microseconds.
    time: u64,
    is_free: bool,
    /// The place of the block in the recording.
    block: usize,
}

/// The numbers of stacks in the profile.
struct Stacks {
    /// The stack of each block.
    allocations: Vec<Option<u32>>,
    /// The stack of the free of each block; empty if frees have no stacks.
    frees: Vec<Option<u32>>,
    /// The stack of each thread that freed blocks, for frees without a stack.
    freed_by: FxHashMap<u32, Option<u32>>,
}

/// Returns allocations and frees of the blocks of one thread; of all threads, if `None`.
#[expect(clippy::cast_possible_truncation, reason = "bytes are far below 2^53")]
fn blocks(
    recording: &Recording,
    every: &[Block],
    begins: f64,
    stacks: &Stacks,
    of_thread: Option<u32>,
) -> Option<WireBlocks> {
    let allocated_on =
        |site: u32| recording.sites.get(&site).map_or(UNKNOWN_THREAD, |site| site.thread);
    let mut events: Vec<Event> = Vec::new();
    for (number, block) in every.iter().enumerate() {
        if of_thread.is_none_or(|thread| allocated_on(block.site) == thread) {
            events.push(Event { time: block.allocated_at, is_free: false, block: number });
            events.extend(block.freed.map(|freed| {
                let time = freed.time.max(block.allocated_at);
                Event { time, is_free: true, block: number }
            }));
        }
    }
    if events.is_empty() {
        return None;
    }
    events.sort_unstable();
    let mut rows =
        WireBlocks { weight_type: "bytes", length: events.len(), ..WireBlocks::default() };
    for Event { time, is_free, block: number } in events {
        let block = &every[number];
        let bytes = block.bytes() as i64;
        let freed_on = block.freed.map_or(UNKNOWN_THREAD, |freed| freed.thread);
        rows.time.push(begins + milliseconds(time));
        rows.memory_address.push(number + 1);
        rows.weight.push(if is_free { -bytes } else { bytes });
        rows.thread_id.push(if is_free { freed_on } else { allocated_on(block.site) });
        let of_thread = || stacks.freed_by.get(&freed_on).copied().flatten();
        let of_free = || stacks.frees.get(number).copied().flatten();
        let stack = if is_free { of_free().or_else(of_thread) } else { stacks.allocations[number] };
        rows.stack.push(stack);
    }
    Some(rows)
}

/// Returns the allocations of all blocks, with their types.
#[expect(clippy::cast_possible_truncation, reason = "bytes are far below 2^53")]
fn types(
    history: &History,
    layout: &Layout,
    every: &[Block],
    begins: f64,
    stacks: &Stacks,
) -> WireTypes {
    let mut order: Vec<usize> = (0..every.len()).collect();
    order.sort_by_key(|&number| every[number].allocated_at);
    let in_order = || order.iter().map(|&number| &every[number]);
    let class = |block| {
        let known = layout.kinds[history.site(block)].block_type;
        known.map_or("(unknown)", |text| layout.heap.text(text)).to_owned()
    };
    WireTypes {
        time: in_order().map(|block| begins + milliseconds(block.allocated_at)).collect(),
        class_name: in_order().map(class).collect(),
        type_name: vec!["block"; every.len()],
        coarse_type: vec!["Other"; every.len()],
        weight: in_order().map(|block| block.bytes() as i64).collect(),
        weight_type: "bytes",
        in_nursery: vec![false; every.len()],
        stack: order.iter().map(|&number| stacks.allocations[number]).collect(),
        length: every.len(),
    }
}

/// The number of the thread that freed a block whose free was lost, in recordings.
const UNKNOWN_THREAD: u32 = 0;

/// Returns the counter of the exact sums: changes of the bytes in live blocks, and numbers of
/// allocations and frees. An exact peak is a sample between the sums.
fn counter(recording: &Recording, begins: f64, main_thread: usize) -> Value {
    let sum = |point: &Point| (point.time, point.live_bytes(), point.allocations + point.frees);
    let mut sums: Vec<(u64, u64, u64)> = recording.timeline.iter().map(sum).collect();
    if let Some(peak) = recording.peak().filter(|peak| peak.is_exact) {
        let next = sums.partition_point(|(time, ..)| *time < peak.time);
        let operations = next.checked_sub(1).map_or(0, |last| sums[last].2);
        sums.insert(next, (peak.time, peak.bytes, operations));
    }
    // To the profiler, the first sample is zero, and the others are relative.
    let (mut time, mut count, mut number) = (vec![begins], vec![0], vec![0]);
    let (mut bytes_before, mut operations_before) = (0, 0);
    for (at, bytes, operations) in sums {
        time.push(begins + milliseconds(at));
        count.push(bytes.cast_signed().saturating_sub(bytes_before));
        number.push(operations.saturating_sub(operations_before));
        (bytes_before, operations_before) = (bytes.cast_signed(), operations);
    }
    json!({
        "name": "malloc",
        "category": "Memory",
        "description": "bytes in live blocks",
        "pid": recording.pid.to_string(),
        "mainThreadIndex": main_thread,
        "samples": { "length": time.len(), "time": time, "count": count, "number": number },
    })
}

fn marker_schema() -> Value {
    let on_the_memory_track = ["marker-chart", "marker-table", "timeline-memory"];
    json!([
        {
            "name": "Recording", "display": ["marker-table"], "tableLabel": "{marker.data.sampled}",
            "tooltipLabel": "recording", "fields": [
                { "key": "sampled", "label": "Blocks", "format": "string" },
                { "key": "lost", "label": "Lost events", "format": "integer" },
            ],
        },
        {
            "name": "HeapPeak", "display": on_the_memory_track, "tooltipLabel": "most in live blocks",
            "chartLabel": "{marker.data.live}", "tableLabel": "{marker.data.live} in live blocks",
            "fields": [{ "key": "live", "label": "Live heap", "format": "bytes" }],
        },
        {
            "name": "HeapMark", "display": on_the_memory_track, "tooltipLabel": "{marker.data.words}",
            "chartLabel": "{marker.data.words}", "tableLabel": "{marker.data.words}",
            "fields": [{ "key": "words", "label": "Words", "format": "string" }],
        },
        {
            "name": "MemoryCycle", "display": on_the_memory_track, "tooltipLabel": "{marker.data.reason}",
            "chartLabel": "{marker.data.reason}", "tableLabel": "{marker.data.reason}",
            "fields": [
                { "key": "reason", "label": "Reason", "format": "string" },
                { "key": "slices", "label": "Slices", "format": "integer" },
                { "key": "nonincremental", "label": "All at once because", "format": "string" },
            ],
        },
        {
            "name": "MemorySlice", "display": on_the_memory_track, "tooltipLabel": "slice of {marker.data.reason}",
            "chartLabel": "{marker.data.reason}", "tableLabel": "{marker.data.reason}",
            "fields": [{ "key": "reason", "label": "Reason", "format": "string" }],
        },
    ])
}

fn sampled(recording: &Recording) -> String {
    match recording.sample_bytes {
        Some(bytes) => format!("a sample of one byte in {bytes}; bytes are those of all blocks"),
        None => "every block".to_owned(),
    }
}

/// Returns an empty table of samples. Without samples of time, the profiler shows the blocks of
/// threads first.
fn no_samples() -> Value {
    json!({ "stack": [], "time": [], "weight": null, "weightType": "samples", "length": 0 })
}

fn name(recording: &Recording) -> &str {
    let program = recording.program.as_deref().unwrap_or("(unknown program)");
    program.rsplit('/').next().unwrap_or(program)
}

fn thread_name(recording: &Recording, number: u32) -> String {
    match recording.threads.get(&number) {
        Some(thread) => thread_text(thread.name.as_deref(), number),
        None => "an unknown thread".to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

//! A recording in the Firefox Profiler: memory over time, moments that were marked, and each block from its birth to its end.
//!
//! Every thread of the program is one in the profile, with the blocks that it allocated and their ends, wherever those happened.
//! Before them stands one for the process, which has the blocks of all: the profiler pairs a block with its end only within a
//! thread.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::tables::Tables;
use super::{meta, thread};
use crate::heap::history::{History, Layout};
use crate::heap::{HeapFrame, HeapOptions};
use crate::recording::{Point, Recording};

/// Writes recordings, each of a process, as one profile.
///
/// # Errors
///
/// If writing fails.
pub fn write(histories: &[History], options: &HeapOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut profile = Profile::default();
    let recordings = || histories.iter().map(History::recording);
    // Times of the profile count from when the first recording began.
    let started = recordings().map(|recording| recording.started_ms).min().unwrap_or(0);
    for history in histories {
        let layout = history.layout(options).map_err(io::Error::other)?;
        profile.add(history, &layout, started);
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
    /// Left out if there are none: an empty table would leave the profiler without a range of time.
    #[serde(rename = "nativeAllocations", skip_serializing_if = "Option::is_none")]
    blocks: Option<WireBlocks>,
}

/// Births and ends of blocks, in the order of time.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WireBlocks {
    /// In milliseconds.
    time: Vec<f64>,
    /// Bytes; negative ones were given back.
    weight: Vec<i64>,
    weight_type: &'static str,
    stack: Vec<Option<u32>>,
    /// What tells blocks apart: their numbers, since an address is soon another block's.
    memory_address: Vec<usize>,
    /// Where it happened.
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
    fn add(&mut self, history: &History, layout: &Layout, started: u64) {
        let recording = history.recording();
        let begins = milliseconds(recording.started_ms.saturating_sub(started) * 1000);
        self.counters.push(counter(recording, begins, self.threads.len()));
        let stacks = self.stacks(history, layout);
        let all = blocks(recording, begins, &stacks, None);
        let mut process = thread(name(recording), recording.pid, self.threads.len());
        process["name"] = format!("{}, all threads", name(recording)).into();
        process["isMainThread"] = true.into();
        process["tid"] = format!("{} all", recording.pid).into();
        process["samples"] = no_samples();
        process["markers"] = self.markers(recording, begins);
        self.threads.push(WireThread { thread: process, blocks: all });
        for (number, of) in &recording.threads {
            let mut thread = thread(name(recording), recording.pid, self.threads.len());
            thread["name"] = thread_name(recording, *number).into();
            thread["isMainThread"] = false.into();
            thread["tid"] = of.tid.into();
            thread["samples"] = no_samples();
            let blocks = blocks(recording, begins, &stacks, Some(*number));
            self.threads.push(WireThread { thread, blocks });
        }
    }

    /// The stacks of the profile: of births by site, of ends by thread.
    fn stacks(&mut self, history: &History, layout: &Layout) -> Stacks {
        let recording = history.recording();
        let stack = |kind: &crate::heap::Kind| {
            self.tables.stack(layout.heap.stack(kind.stack).rev(), OTHER)
        };
        let by_place: Vec<_> = layout.kinds.iter().map(stack).collect();
        let births = recording.blocks.iter().map(|block| by_place[history.site(block)]).collect();
        let enders: std::collections::BTreeSet<u32> =
            recording.blocks.iter().filter_map(|block| Some(block.freed?.thread)).collect();
        let mut ends = FxHashMap::default();
        for ender in enders {
            let function = format!("(given back by {})", thread_name(recording, ender));
            let frame =
                HeapFrame { function, file: None, line: None, inlined: false, address: None };
            ends.insert(ender, self.tables.stack(std::iter::once(&frame), OTHER));
        }
        Stacks { births, ends }
    }

    fn markers(&mut self, recording: &Recording, begins: f64) -> Value {
        let whole = json!({
            "type": "Recording", "sampled": sampled(recording), "lost": recording.lost,
        });
        let ends = begins + milliseconds(recording.length);
        // Counters alone do not make the profiler show their whole time: this marker does.
        let mut markers = vec![("Recording", begins, Some(ends), whole)];
        if let Some(peak) = recording.peak() {
            let data = json!({ "type": "HeapPeak", "live": peak.bytes });
            markers.push(("Peak", begins + milliseconds(peak.time), None, data));
        }
        for crate::recording::Mark { time, text: words } in &recording.marks {
            let kind = match words.split_once(": ") {
                Some(("report", _)) => "Memory report",
                Some(("minimize", _)) => "Minimize",
                _ => "Mark",
            };
            let data = json!({ "type": "HeapMark", "words": words });
            markers.push((kind, begins + milliseconds(*time), None, data));
        }
        let names: Vec<u32> =
            markers.iter().map(|(name, ..)| self.tables.string((*name).to_owned())).collect();
        json!({
            "data": markers.iter().map(|(.., data)| data).collect::<Vec<_>>(),
            "name": names,
            "startTime": markers.iter().map(|(_, start, ..)| start).collect::<Vec<_>>(),
            "endTime": markers.iter().map(|(_, _, end, _)| end).collect::<Vec<_>>(),
            // 0 is a moment, 1 is from a start to an end.
            "phase": markers.iter().map(|(_, _, end, _)| u32::from(end.is_some())).collect::<Vec<_>>(),
            "category": vec![OTHER; markers.len()],
            "length": markers.len(),
        })
    }
}

/// The numbers of stacks in the profile.
struct Stacks {
    /// By block.
    births: Vec<Option<u32>>,
    /// By the thread that gave it back.
    ends: FxHashMap<u32, Option<u32>>,
}

/// Births and ends of the blocks that one thread allocated, or all did.
#[expect(clippy::cast_possible_truncation, reason = "bytes are far below 2^53")]
fn blocks(
    recording: &Recording,
    begins: f64,
    stacks: &Stacks,
    of_thread: Option<u32>,
) -> Option<WireBlocks> {
    let born_on = |site: u32| recording.sites.get(&site).map_or(UNKNOWN_THREAD, |site| site.thread);
    // The time, whether it is an end, and the block: one ends after its birth, also at the same moment.
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (number, block) in recording.blocks.iter().enumerate() {
        if of_thread.is_none_or(|thread| born_on(block.site) == thread) {
            events.push((block.allocated_at, false, number));
            events.extend(
                block.freed.map(|freed| (freed.time.max(block.allocated_at), true, number)),
            );
        }
    }
    if events.is_empty() {
        return None;
    }
    events.sort_unstable();
    let mut rows =
        WireBlocks { weight_type: "bytes", length: events.len(), ..WireBlocks::default() };
    for (time, is_end, number) in events {
        let block = &recording.blocks[number];
        let bytes = block.bytes() as i64;
        let ender = block.freed.map_or(UNKNOWN_THREAD, |freed| freed.thread);
        rows.time.push(begins + milliseconds(time));
        rows.memory_address.push(number + 1);
        rows.weight.push(if is_end { -bytes } else { bytes });
        rows.thread_id.push(if is_end { ender } else { born_on(block.site) });
        let stack =
            if is_end { stacks.ends.get(&ender).copied().flatten() } else { stacks.births[number] };
        rows.stack.push(stack);
    }
    Some(rows)
}

/// In recordings, who gave back a block whose end was lost.
const UNKNOWN_THREAD: u32 = 0;

/// The exact sums: how the bytes in live blocks change, and how many blocks came and went.
fn counter(recording: &Recording, begins: f64, main_thread: usize) -> Value {
    let track = &recording.timeline;
    // The profiler takes the first sample for zero; what follows it is relative.
    let mut before = Point::default();
    let (mut time, mut count, mut number) = (vec![begins], vec![0], vec![0]);
    for point in track {
        let live = |point: &Point| point.live_bytes().cast_signed();
        let operations = |point: &Point| point.allocations + point.frees;
        time.push(begins + milliseconds(point.time));
        count.push(live(point) - live(&before));
        number.push(operations(point).saturating_sub(operations(&before)));
        before = *point;
    }
    json!({
        "name": "malloc",
        "category": "Memory",
        "description": "bytes in live blocks",
        "pid": recording.pid.to_string(),
        "mainThreadIndex": main_thread,
        "samples": { "time": time, "count": count, "number": number, "length": track.len() + 1 },
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
    ])
}

fn sampled(recording: &Recording) -> String {
    match recording.sample_bytes {
        Some(bytes) => format!("a sample of one byte in {bytes}; bytes are those of all blocks"),
        None => "every block".to_owned(),
    }
}

/// Without time samples, the profiler opens threads on their blocks.
fn no_samples() -> Value {
    json!({ "stack": [], "time": [], "weight": null, "weightType": "samples", "length": 0 })
}

fn name(recording: &Recording) -> &str {
    let program = recording.program.as_deref().unwrap_or("(unknown program)");
    program.rsplit('/').next().unwrap_or(program)
}

fn thread_name(recording: &Recording, number: u32) -> String {
    match recording.threads.get(&number) {
        Some(crate::recording::Thread { name: Some(name), .. }) => format!("{name} ({number})"),
        Some(_) => format!("thread {number}"),
        None => "an unknown thread".to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

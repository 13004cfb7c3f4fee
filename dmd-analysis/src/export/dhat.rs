//! DHAT's file, version 2, for valgrind's `dh_view.html` and the Firefox Profiler.

mod lives;

use std::io::{self, Write};

use serde::Serialize;

use super::unreadable;
use crate::analysis::{Class, Totals};
use crate::heap::history::History;
use crate::heap::table::Table;
use crate::heap::{Amounts, Heap, HeapOptions, Kind, StackAmounts};
use crate::recording::TEMPORARY;
use lives::Lives;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireFile<'h> {
    dhat_file_version: u32,
    mode: String,
    verb: &'static str,
    bklt: bool,
    bkacc: bool,
    tu: &'static str,
    #[serde(rename = "Mtu")]
    mtu: &'static str,
    tuth: u64,
    cmd: &'h str,
    pid: u32,
    te: u64,
    tg: u64,
    pps: Vec<WirePoint>,
    ftbl: &'h [String],
}

/// A place where blocks are allocated.
#[derive(Serialize, Default)]
struct WirePoint {
    /// Bytes and number of all blocks.
    tb: u64,
    tbk: u64,
    /// The sum of their lifetimes, which a dump does not contain.
    tl: u64,
    /// Bytes and number at their maximum.
    mb: u64,
    mbk: u64,
    /// Bytes and number when the heap was largest.
    gb: u64,
    gbk: u64,
    /// Bytes and number at the end.
    eb: u64,
    ebk: u64,
    /// The numbers of frames, innermost first.
    fs: Vec<u32>,
}

/// Writes the file. The time of the dump is DHAT's end and also its maximum. Lifetimes are unknown.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write(heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
    let (mut frames, mut places) = (frames(), Table::default());
    let mut points: Vec<WirePoint> = Vec::new();
    for StackAmounts { stack, live, allocated } in heap.by_stack() {
        let at = place(heap, stack, &mut frames, &mut places);
        if at == points.len() {
            points.push(WirePoint { fs: places.values()[at].to_vec(), ..WirePoint::default() });
        }
        points[at].add(&live, &allocated);
    }
    let process = &heap.process;
    let file = WireFile {
        dhat_file_version: 2,
        mode: format!("DMD, {}", process.mode),
        verb: verb(heap),
        // The Firefox Profiler does not open a file without lifetimes.
        bklt: true,
        bkacc: false,
        // The viewer's rates are per million units of time, which it calls by `Mtu`.
        tu: "µs",
        mtu: "s",
        tuth: TEMPORARY,
        cmd: &process.program,
        pid: process.pid,
        te: process.uptime_ms.saturating_mul(1000),
        tg: process.uptime_ms.saturating_mul(1000),
        pps: points,
        ftbl: frames.values(),
    };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)
}

/// Writes the file of a recording up to a moment in microseconds, which is DHAT's end.
///
/// # Errors
///
/// Returns an error if writing fails, or if the options keep one class of blocks: a recording
/// contains no reports.
pub fn write_history(
    history: &History,
    until: u64,
    options: &HeapOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let layout = history.layout(options).map_err(unreadable)?;
    let heap = &layout.heap;
    let (mut frames, mut places) = (frames(), Table::default());
    let of_kind = |kind: &Kind| place(heap, kind.stack, &mut frames, &mut places);
    let of_site: Vec<usize> = layout.kinds.iter().map(of_kind).collect();
    let lives = Lives::new(history, until, &of_site, places.values().len());
    let lives = lives.map_err(unreadable)?;
    let points = lives.points.into_iter().zip(places.values());
    let file = WireFile {
        dhat_file_version: 2,
        mode: format!("DMD, {}", heap.process.mode),
        verb: "Allocated",
        bklt: true,
        bkacc: false,
        tu: "µs",
        mtu: "s",
        tuth: TEMPORARY,
        cmd: &heap.process.program,
        pid: heap.process.pid,
        te: until,
        tg: lives.peak,
        pps: points
            .filter(|(point, _)| point.tb > 0)
            .map(|(point, place)| WirePoint { fs: place.to_vec(), ..point })
            .collect(),
        ftbl: frames.values(),
    };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)
}

/// Returns a table of frames. The first is the root in viewers.
fn frames() -> Table<String> {
    let mut frames = Table::default();
    frames.number("[root]".to_owned());
    frames
}

/// Returns the number of the place of a stack.
///
/// A file may contain a place only once. Places with the same texts of frames are equal.
fn place(
    heap: &Heap,
    stack: u32,
    frames: &mut Table<String>,
    places: &mut Table<Box<[u32]>>,
) -> usize {
    let frames = heap.stack(stack).map(|frame| frames.number(frame.valgrind_text()));
    places.number(frames.collect()) as usize
}

/// Returns the verb for the places. Viewers write "at {" after it.
fn verb(heap: &Heap) -> &'static str {
    match heap.only {
        Some(Class::Unreported) => "Unreported, allocated",
        Some(Class::OnceReported) => "Reported once, allocated",
        Some(Class::TwiceReported) => "Reported twice, allocated",
        _ if heap.amounts == Amounts::Live => "Live, allocated",
        _ => "Allocated",
    }
}

impl WirePoint {
    fn add(&mut self, live: &Totals, allocated: &Totals) {
        let add = |sum: &mut u64, number: i128| {
            *sum = sum.saturating_add(u64::try_from(number).unwrap_or(0));
        };
        add(&mut self.tb, allocated.usable());
        add(&mut self.tbk, allocated.blocks);
        for (bytes, blocks) in [
            (&mut self.mb, &mut self.mbk),
            (&mut self.gb, &mut self.gbk),
            (&mut self.eb, &mut self.ebk),
        ] {
            add(bytes, live.usable());
            add(blocks, live.blocks);
        }
    }
}

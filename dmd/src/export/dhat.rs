//! DHAT's file, version 2, for valgrind's `dh_view.html` and the Firefox Profiler.

use std::io::{self, Write};

use serde::Serialize;

use crate::analysis::{Class, Totals};
use crate::heap::table::Table;
use crate::heap::{Heap, Knows};

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
    /// All blocks: bytes and number.
    tb: u64,
    tbk: u64,
    /// Their lifetimes, which are not known.
    tl: u64,
    /// At their maximum.
    mb: u64,
    mbk: u64,
    /// When the heap was largest.
    gb: u64,
    gbk: u64,
    /// At the end.
    eb: u64,
    ebk: u64,
    /// The frames by number, innermost first.
    fs: Vec<u32>,
}

/// Writes the file. The dump's moment is DHAT's end and also its maximum; no lifetimes are known.
///
/// # Errors
///
/// If writing fails.
pub fn write(heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
    let mut frames = Table::default();
    // The viewers' root of all frames.
    frames.number("[root]".to_owned());
    // A place may be there only once, and places are equal if their frames' texts are.
    let mut places: Table<Box<[u32]>> = Table::default();
    let mut points: Vec<WirePoint> = Vec::new();
    for (stack, live, allocated) in heap.by_stack() {
        let place: Box<[u32]> =
            heap.stack(stack).map(|frame| frames.number(frame.valgrind_text())).collect();
        let at = places.number(place.clone()) as usize;
        if at == points.len() {
            points.push(WirePoint { fs: place.into(), ..WirePoint::default() });
        }
        points[at].add(&live, &allocated);
    }
    let process = &heap.process;
    let file = WireFile {
        dhat_file_version: 2,
        mode: format!("DMD, {}", process.mode),
        verb: verb(heap),
        // The Firefox Profiler does not open a file without numbers of lifetimes.
        bklt: true,
        bkacc: false,
        tu: "ms",
        mtu: "s",
        tuth: 1000,
        cmd: &process.program,
        pid: process.pid,
        te: process.uptime_ms,
        tg: process.uptime_ms,
        pps: points,
        ftbl: frames.values(),
    };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)
}

/// What was done at the places: viewers write "at {" behind it.
fn verb(heap: &Heap) -> &'static str {
    match heap.only {
        Some(Class::Unreported) => "Unreported, allocated",
        Some(Class::OnceReported) => "Reported once, allocated",
        Some(Class::TwiceReported) => "Reported twice, allocated",
        _ if heap.knows == Knows::Live => "Live, allocated",
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

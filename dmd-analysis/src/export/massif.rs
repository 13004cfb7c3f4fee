//! Massif's file, for `ms_print`: dumps, or moments of a recording, as snapshots of one program, the heap of each as a tree of
//! callers.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::heap::history::History;
use crate::heap::{Heap, HeapFrame, HeapOptions};
use crate::recording::Recording;

/// Places with less than this share of their snapshot are written as one line, as massif does.
const THRESHOLD_PERCENT: i128 = 1;

/// Writes the file: a snapshot for each dump, in this order. The tree is of requested bytes; slop is massif's "extra".
///
/// # Errors
///
/// If writing fails.
pub fn write(heaps: &[Heap], out: &mut dyn Write) -> io::Result<()> {
    let first = heaps.first().map(|heap| &heap.process);
    write_heading(first.map_or("(unknown program)", |process| &process.program), out)?;
    let largest = heaps.iter().map(|heap| heap.totals().usable()).max().unwrap_or(0);
    let mut has_peak = false;
    for (number, heap) in heaps.iter().enumerate() {
        // There can be only one peak.
        let is_peak = !has_peak && heap.totals().usable() == largest;
        has_peak |= is_peak;
        write_snapshot(heap, number, if is_peak { Tree::Peak } else { Tree::Detailed }, out)?;
    }
    Ok(())
}

/// As many moments of a recording become snapshots, besides its peak.
const MOMENTS: u64 = 60;

/// Every so many of them has a tree.
const DETAILED_EVERY: u64 = 10;

/// Writes the file of a recording: snapshots at even distances, and at the peak. The trees are those of the peak, of the end, and
/// of some in between.
///
/// # Errors
///
/// If writing fails, and if blocks of one class are asked for: a recording does not know who reports what.
pub fn write_history(
    history: &History,
    options: &HeapOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let recording = history.recording();
    write_heading(recording.program.as_deref().unwrap_or("(unknown program)"), out)?;
    for (number, (time, tree)) in moments(recording).into_iter().enumerate() {
        let heap = history.heap(time, options).map_err(io::Error::other)?;
        write_snapshot(&heap, number, tree, out)?;
    }
    Ok(())
}

/// The moments of snapshots, in microseconds.
fn moments(recording: &Recording) -> BTreeMap<u64, Tree> {
    let length = recording.length;
    let even = (0..=MOMENTS).map(|number| {
        let is_detailed = number % DETAILED_EVERY == 0 && number > 0;
        let tree = if is_detailed { Tree::Detailed } else { Tree::Empty };
        (length / MOMENTS * number + length % MOMENTS * number / MOMENTS, tree)
    });
    let peak = recording.peak().map(|peak| (peak.time, Tree::Peak));
    // Of moments that coincide, the last one counts.
    even.chain(peak).collect()
}

/// What is said of a snapshot besides its sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tree {
    /// Nothing.
    Empty,
    /// Where its blocks were allocated.
    Detailed,
    /// The same, and that it is the largest.
    Peak,
}

fn write_heading(program: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "desc: dmd, threshold {THRESHOLD_PERCENT}%\ncmd: {program}\ntime_unit: ms")
}

fn write_snapshot(heap: &Heap, number: usize, tree: Tree, out: &mut dyn Write) -> io::Result<()> {
    let totals = heap.totals();
    writeln!(out, "#-----------\nsnapshot={number}\n#-----------")?;
    writeln!(out, "time={}", heap.process.uptime_ms)?;
    writeln!(out, "mem_heap_B={}\nmem_heap_extra_B={}", totals.req, totals.slop)?;
    let kind = match tree {
        Tree::Empty => "empty",
        Tree::Detailed => "detailed",
        Tree::Peak => "peak",
    };
    writeln!(out, "mem_stacks_B=0\nheap_tree={kind}")?;
    match tree {
        Tree::Empty => Ok(()),
        Tree::Detailed | Tree::Peak => write_tree(heap, totals.req, out),
    }
}

/// Stacks that begin alike, the bytes of each, and how many of their frames that is.
struct Node {
    depth: usize,
    label: String,
    bytes: i128,
    stacks: Vec<(u32, i128)>,
}

fn write_tree(heap: &Heap, total: i128, out: &mut dyn Write) -> io::Result<()> {
    let stacks: Vec<(u32, i128)> = heap
        .by_stack()
        .into_iter()
        .map(|(stack, live, allocated)| (stack, heap.either(live, allocated).req))
        .collect();
    let label = "(heap allocation functions) the program's allocator".to_owned();
    // The last one is the next one written.
    let mut pending = vec![Node { depth: 0, label, bytes: total, stacks }];
    while let Some(node) = pending.pop() {
        let Node { depth, label, bytes, stacks } = node;
        let (mut shown, hidden) = callers(heap, depth, stacks, total);
        let lines = shown.len() + usize::from(hidden.0 > 0);
        writeln!(out, "{:depth$}n{lines}: {bytes} {label}", "")?;
        if hidden.0 > 0 {
            let (label, bytes) = (below(hidden), hidden.1);
            pending.push(Node { depth: depth + 1, label, bytes, stacks: Vec::new() });
        }
        shown.reverse();
        pending.append(&mut shown);
    }
    Ok(())
}

/// The callers that are shown, largest first, and number and bytes of those that are not.
fn callers(
    heap: &Heap,
    depth: usize,
    stacks: Vec<(u32, i128)>,
    total: i128,
) -> (Vec<Node>, (usize, i128)) {
    let mut callers: BTreeMap<u32, (i128, Vec<(u32, i128)>)> = BTreeMap::new();
    for (stack, bytes) in stacks {
        // One that ends here has no caller.
        let Some(frame) = heap.stacks[stack as usize].get(depth) else { continue };
        let caller = callers.entry(*frame).or_default();
        caller.0 += bytes;
        caller.1.push((stack, bytes));
    }
    let mut shown = Vec::new();
    let mut hidden = (0, 0);
    for (frame, (bytes, stacks)) in callers {
        if bytes * 100 < total * THRESHOLD_PERCENT {
            hidden = (hidden.0 + 1, hidden.1 + bytes);
        } else {
            let label = label(&heap.frames[frame as usize]);
            shown.push(Node { depth: depth + 1, label, bytes, stacks });
        }
    }
    shown.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.label.cmp(&b.label)));
    (shown, hidden)
}

/// A hash begins a comment: `{closure#0}` is written `{closure 0}`.
fn label(frame: &HeapFrame) -> String {
    frame.valgrind_text().replace('#', " ").replace(['\n', '\r'], " ")
}

/// In massif's words.
fn below((count, _): (usize, i128)) -> String {
    let places = if count == 1 { "place" } else { "places, all" };
    let comma = if count == 1 { "," } else { "" };
    format!("in {count} {places}{comma} below massif's threshold ({THRESHOLD_PERCENT}.00%)")
}

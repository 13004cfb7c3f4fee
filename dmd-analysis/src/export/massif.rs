//! Massif's file, for `ms_print`: dumps, or moments of a recording, as snapshots of one program.
//!
//! The heap of each snapshot is a tree of callers.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::unreadable;
use crate::heap::history::History;
use crate::heap::{Heap, HeapFrame, HeapOptions, StackAmounts};
use crate::recording::Recording;

/// The smallest share of a snapshot that is a place of its own. Smaller ones are one line, like in
/// massif.
const THRESHOLD_PERCENT: i128 = 1;

/// Writes the file: a snapshot for each dump, in this order. The tree is of requested bytes; slop
/// is massif's "extra".
///
/// # Errors
///
/// Returns an error if writing fails.
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

/// The number of snapshots of a recording, besides its peak and its beginning.
const MOMENTS: u64 = 60;

/// The distance of snapshots that have a tree.
const DETAILED_EVERY: u64 = 10;

/// Writes the file of a recording: snapshots at even distances, and at the peak.
///
/// The peak, the end and some moments between have trees.
///
/// # Errors
///
/// Returns an error if writing fails, or if the options keep one class of blocks: a recording
/// contains no reports.
pub fn write_history(
    history: &History,
    options: &HeapOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let recording = history.recording();
    write_heading(recording.program.as_deref().unwrap_or("(unknown program)"), out)?;
    let moments = moments(recording);
    let times: Vec<u64> = moments.keys().copied().collect();
    let mut heaps = history.heaps_in_turn(&times, options).map_err(unreadable)?;
    for (number, tree) in moments.into_values().enumerate() {
        let Some(heap) = heaps.advance() else { break };
        write_snapshot(heap, number, tree, out)?;
    }
    Ok(())
}

/// Returns the moments of snapshots, in microseconds.
fn moments(recording: &Recording) -> BTreeMap<u64, Tree> {
    let length = recording.length;
    let even = (0..=MOMENTS).map(|number| {
        let is_detailed = number % DETAILED_EVERY == 0 && number > 0;
        let tree = if is_detailed { Tree::Detailed } else { Tree::Empty };
        (length / MOMENTS * number + length % MOMENTS * number / MOMENTS, tree)
    });
    let peak = recording.peak().map(|peak| (peak.time, Tree::Peak));
    // The peak replaces another snapshot of the same moment.
    even.chain(peak).collect()
}

/// The detail of a snapshot besides its sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tree {
    /// No tree.
    Empty,
    /// A tree of callers.
    Detailed,
    /// A tree of callers, in the largest snapshot.
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

/// The stacks whose innermost frames are the same.
struct Node {
    /// The number of frames that are the same.
    depth: usize,
    label: String,
    bytes: i128,
    stacks: Vec<Stack>,
}

/// A stack and its bytes.
struct Stack {
    number: u32,
    bytes: i128,
}

/// The callers of a node.
#[derive(Default)]
struct Callers {
    /// Those that are shown, largest first.
    shown: Vec<Node>,
    hidden: Hidden,
}

/// The callers that are too small to show.
#[derive(Default)]
struct Hidden {
    count: usize,
    bytes: i128,
}

fn write_tree(heap: &Heap, total: i128, out: &mut dyn Write) -> io::Result<()> {
    let stacks: Vec<Stack> = heap
        .by_stack()
        .into_iter()
        .map(|StackAmounts { stack, live, allocated }| Stack {
            number: stack,
            bytes: heap.either(live, allocated).req,
        })
        .collect();
    let label = "(heap allocation functions) the program's allocator".to_owned();
    // The last one is written next.
    let mut pending = vec![Node { depth: 0, label, bytes: total, stacks }];
    while let Some(node) = pending.pop() {
        let Node { depth, label, bytes, stacks } = node;
        let Callers { mut shown, hidden } = callers(heap, depth, stacks, total);
        let lines = shown.len() + usize::from(hidden.count > 0);
        writeln!(out, "{:depth$}n{lines}: {bytes} {label}", "")?;
        if hidden.count > 0 {
            let (label, bytes) = (below(hidden.count), hidden.bytes);
            pending.push(Node { depth: depth + 1, label, bytes, stacks: Vec::new() });
        }
        shown.reverse();
        pending.append(&mut shown);
    }
    Ok(())
}

/// Groups stacks by the frame at `depth`.
fn callers(heap: &Heap, depth: usize, stacks: Vec<Stack>, total: i128) -> Callers {
    let mut callers: BTreeMap<u32, Vec<Stack>> = BTreeMap::new();
    for stack in stacks {
        // A stack that ends here has no caller.
        let Some(frame) = heap.stacks[stack.number as usize].get(depth) else { continue };
        callers.entry(*frame).or_default().push(stack);
    }
    let Callers { mut shown, mut hidden } = Callers::default();
    for (frame, stacks) in callers {
        let bytes = stacks.iter().map(|stack| stack.bytes).sum::<i128>();
        if bytes * 100 < total * THRESHOLD_PERCENT {
            hidden.count += 1;
            hidden.bytes += bytes;
        } else {
            let label = label(&heap.frames[frame as usize]);
            shown.push(Node { depth: depth + 1, label, bytes, stacks });
        }
    }
    shown.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.label.cmp(&b.label)));
    Callers { shown, hidden }
}

/// Returns the label of a frame. A hash begins a comment, so `{closure#0}` is written `{closure
/// 0}`.
fn label(frame: &HeapFrame) -> String {
    frame.valgrind_text().replace('#', " ").replace(['\n', '\r'], " ")
}

/// Returns massif's label for places that are too small to show.
fn below(count: usize) -> String {
    let places = if count == 1 { "place" } else { "places, all" };
    let comma = if count == 1 { "," } else { "" };
    format!("in {count} {places}{comma} below massif's threshold ({THRESHOLD_PERCENT}.00%)")
}

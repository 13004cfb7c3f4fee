//! Massif's file, for `ms_print`: dumps as snapshots of one program, the heap of each as a tree of callers.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::heap::{Heap, HeapFrame};

/// Places with less than this share of their snapshot are written as one line, as massif does.
const THRESHOLD_PERCENT: i128 = 1;

/// Writes the file: a snapshot for each dump, in this order. The tree is of requested bytes; slop is massif's "extra".
///
/// # Errors
///
/// If writing fails.
pub fn write(heaps: &[Heap], out: &mut dyn Write) -> io::Result<()> {
    let first = heaps.first().map(|heap| &heap.process);
    let program = first.map_or("(unknown program)", |process| &process.program);
    writeln!(out, "desc: dmd, threshold {THRESHOLD_PERCENT}%\ncmd: {program}\ntime_unit: ms")?;
    let largest = heaps.iter().map(|heap| heap.totals().usable()).max().unwrap_or(0);
    let mut has_peak = false;
    for (number, heap) in heaps.iter().enumerate() {
        let totals = heap.totals();
        writeln!(out, "#-----------\nsnapshot={number}\n#-----------")?;
        writeln!(out, "time={}", heap.process.uptime_ms)?;
        writeln!(out, "mem_heap_B={}\nmem_heap_extra_B={}", totals.req, totals.slop)?;
        // There can be only one peak.
        let is_peak = !has_peak && totals.usable() == largest;
        has_peak |= is_peak;
        let kind = if is_peak { "peak" } else { "detailed" };
        writeln!(out, "mem_stacks_B=0\nheap_tree={kind}")?;
        write_tree(heap, totals.req, out)?;
    }
    Ok(())
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

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

/// A function, and who called it.
#[derive(Default)]
struct Node {
    bytes: i128,
    callers: BTreeMap<String, Node>,
}

fn write_tree(heap: &Heap, total: i128, out: &mut dyn Write) -> io::Result<()> {
    let mut root = Node::default();
    for row in &heap.rows {
        let bytes = heap.amount(row).req;
        root.bytes += bytes;
        let mut node = &mut root;
        for frame in heap.stack(row.kind.stack) {
            node = node.callers.entry(label(frame)).or_default();
            node.bytes += bytes;
        }
    }
    let label = "(heap allocation functions) the program's allocator";
    let mut pending = vec![(0, label.to_owned(), root)];
    // Written from a list and not by recursion: a stack may be deep.
    while let Some((depth, label, node)) = pending.pop() {
        let Node { bytes, callers } = node;
        let (shown, hidden) = split(callers, total);
        let lines = shown.len() + usize::from(hidden.0 > 0);
        writeln!(out, "{:depth$}n{lines}: {bytes} {label}", "")?;
        // The last one pushed is the next one written.
        if hidden.0 > 0 {
            pending.push((depth + 1, below(hidden), Node { bytes: hidden.1, ..Node::default() }));
        }
        pending.extend(shown.into_iter().rev().map(|(label, node)| (depth + 1, label, node)));
    }
    Ok(())
}

/// A hash begins a comment: `{closure#0}` is written `{closure 0}`.
fn label(frame: &HeapFrame) -> String {
    frame.valgrind_text().replace('#', " ").replace(['\n', '\r'], " ")
}

/// What is shown, largest first, and number and bytes of what is not.
fn split(callers: BTreeMap<String, Node>, total: i128) -> (Vec<(String, Node)>, (usize, i128)) {
    let is_shown = |node: &Node| node.bytes * 100 >= total * THRESHOLD_PERCENT;
    let (mut shown, hidden): (Vec<_>, Vec<_>) =
        callers.into_iter().partition(|(_, node)| is_shown(node));
    // Names are sorted already.
    shown.sort_by_key(|(_, node)| std::cmp::Reverse(node.bytes));
    let bytes = hidden.iter().map(|(_, node)| node.bytes).sum();
    (shown, (hidden.len(), bytes))
}

/// In massif's words.
fn below((count, _): (usize, i128)) -> String {
    let places = if count == 1 { "place" } else { "places, all" };
    let comma = if count == 1 { "," } else { "" };
    format!("in {count} {places}{comma} below massif's threshold ({THRESHOLD_PERCENT}.00%)")
}

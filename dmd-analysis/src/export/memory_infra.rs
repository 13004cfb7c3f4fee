//! Chrome's MemoryInfra trace (heaps, version 2): a detailed memory dump for each dump, for Catapult's trace viewer.
//!
//! The viewer breaks a heap down by stack and by type, and compares two dumps of one trace.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use serde::Serialize;
use serde_json::json;

use crate::analysis::{Class, Totals};
use crate::heap::table::Table;
use crate::heap::{Heap, Process, Row};

/// Writes the trace: a memory dump for each dump, in this order.
///
/// All are of one process in the trace, though they may be of several runs: only then can the viewer compare them.
///
/// # Errors
///
/// If writing fails.
pub fn write(heaps: &[Heap], out: &mut dyn Write) -> io::Result<()> {
    let mut maps = Maps::default();
    let first = heaps.first().map(|heap| &heap.process);
    let name = first.map_or("(unknown program)", Process::name);
    // The viewer takes process 0 for the kernel.
    let pid = first.map_or(0, |process| process.pid).max(1);
    let mut events = vec![json!({
        "ph": "M", "name": "process_name", "cat": "__metadata", "pid": pid, "tid": 0, "ts": 0,
        "args": { "name": name },
    })];
    let mut time = 0;
    for (number, heap) in heaps.iter().enumerate() {
        // One after the other, whenever their processes began.
        time = heap.process.uptime_ms.max(time + 1);
        let dumps = json!({
            "level_of_detail": "detailed",
            "allocators": allocators(heap, number),
            "heaps_v2": maps.heaps(heap),
        });
        events.push(json!({
            "ph": "v", "name": "explicitly_triggered", "cat": "disabled-by-default-memory-infra",
            "id": format!("{:x}", number + 1), "pid": pid, "tid": -1,
            "ts": time.saturating_mul(1000), "args": { "dumps": dumps },
        }));
    }
    serde_json::to_writer(&mut *out, &json!({ "traceEvents": events }))?;
    writeln!(out)
}

/// The allocators of a dump: all blocks, and where reports are known the classes of blocks beside them.
const ALL: &str = "malloc";

fn classes(heap: &Heap) -> Vec<(&'static str, Option<Class>)> {
    let of_classes = heap.classes().iter().map(|class| (class.name(), Some(*class)));
    std::iter::once((ALL, None)).chain(of_classes).collect()
}

fn rows(heap: &Heap, class: Option<Class>) -> impl Iterator<Item = &Row> {
    heap.rows.iter().filter(move |row| class.is_none_or(|class| row.kind.class == class))
}

fn allocators(heap: &Heap, number: usize) -> serde_json::Value {
    let mut allocators = serde_json::Map::new();
    for (at, (name, class)) in classes(heap).into_iter().enumerate() {
        let totals =
            rows(heap, class).fold(Totals::default(), |sum, row| sum.plus(&heap.amount(row)));
        let scalar = |value: i128, units: &str| json!({ "type": "scalar", "units": units, "value": format!("{value:x}") });
        let attributes = json!({
            "size": scalar(totals.usable(), "bytes"),
            "object_count": scalar(totals.blocks, "objects"),
        });
        // Different for each allocator of the trace.
        let guid = format!("{:x}", (number + 1) * 16 + at);
        allocators.insert(name.to_owned(), json!({ "guid": guid, "attrs": attributes }));
    }
    allocators.into()
}

/// The maps of a trace. A later dump adds to them.
#[derive(Default)]
struct Maps {
    strings: Table<String>,
    /// Name and parent.
    nodes: Table<(u32, Option<u32>)>,
    types: Table<u32>,
    /// How many of each have been written.
    written: [usize; 3],
}

#[derive(Serialize)]
struct WireString<'m> {
    id: usize,
    string: &'m str,
}

#[derive(Serialize)]
struct WireNode {
    id: usize,
    name_sid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
}

/// Ids begin at 1: a parent of 0 is none to the viewer.
fn id(number: u32) -> u32 {
    number + 1
}

impl Maps {
    fn heaps(&mut self, heap: &Heap) -> serde_json::Value {
        let mut allocators = serde_json::Map::new();
        // Nodes by thread and stack, which all classes share.
        let mut known: FxHashMap<(Option<u32>, u32), u32> = FxHashMap::default();
        for (name, class) in classes(heap) {
            let mut sums: BTreeMap<(u32, u32), Totals> = BTreeMap::new();
            for row in rows(heap, class) {
                let node = known.entry((row.kind.thread, row.kind.stack));
                let node = *node.or_insert_with(|| self.node(heap, row));
                let sum = sums.entry((node, self.block_type(heap, row))).or_default();
                *sum = sum.plus(&heap.amount(row));
            }
            let entries = || sums.iter();
            allocators.insert(
                name.to_owned(),
                json!({
                    "nodes": entries().map(|((node, _), _)| node).collect::<Vec<_>>(),
                    "types": entries().map(|((_, block_type), _)| block_type).collect::<Vec<_>>(),
                    "counts": entries().map(|(_, sum)| sum.blocks).collect::<Vec<_>>(),
                    "sizes": entries().map(|(_, sum)| sum.usable()).collect::<Vec<_>>(),
                }),
            );
        }
        json!({ "version": 1, "maps": self.unwritten(), "allocators": allocators })
    }

    fn node(&mut self, heap: &Heap, row: &Row) -> u32 {
        let mut parent = None;
        let thread = row.kind.thread.map(|thread| format!("[Thread: {}]", heap.text(thread)));
        let frames = heap.stack(row.kind.stack).rev().map(|frame| frame.function.clone());
        for name in thread.into_iter().chain(frames) {
            let name = id(self.strings.number(name));
            parent = Some(id(self.nodes.number((name, parent))));
        }
        parent.unwrap_or(0)
    }

    fn block_type(&mut self, heap: &Heap, row: &Row) -> u32 {
        let name = row.kind.block_type.map_or("[unknown]", |name| heap.text(name));
        let name = id(self.strings.number(name.to_owned()));
        id(self.types.number(name))
    }

    /// What was not written with an earlier dump.
    fn unwritten(&mut self) -> serde_json::Value {
        let [strings, nodes, types] = self.written;
        self.written =
            [self.strings.values().len(), self.nodes.values().len(), self.types.values().len()];
        let numbered = |from: usize| from + 1..;
        let strings: Vec<_> = numbered(strings)
            .zip(&self.strings.values()[strings..])
            .map(|(id, string)| WireString { id, string })
            .collect();
        let nodes: Vec<_> = numbered(nodes)
            .zip(&self.nodes.values()[nodes..])
            .map(|(id, &(name_sid, parent))| WireNode { id, name_sid, parent })
            .collect();
        let types: Vec<_> = numbered(types)
            .zip(&self.types.values()[types..])
            .map(|(id, &name_sid)| WireNode { id, name_sid, parent: None })
            .collect();
        json!({ "strings": strings, "nodes": nodes, "types": types })
    }
}

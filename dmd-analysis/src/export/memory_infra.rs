//! Chrome's MemoryInfra trace (heaps, version 2), for Catapult's trace viewer.
//!
//! The viewer groups a heap by stack and by type, and compares two dumps of one trace.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use serde::Serialize;
use serde_json::json;

use crate::analysis::{Class, Totals};
use crate::heap::table::Table;
use crate::heap::{Heap, Process, Row};

/// Writes the trace: a detailed memory dump for each dump, in this order.
///
/// All have one process in the trace, even dumps of several runs: the viewer compares dumps of one
/// process only.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write(heaps: &[Heap], out: &mut dyn Write) -> io::Result<()> {
    let mut maps = Maps::default();
    let first = heaps.first().map(|heap| &heap.process);
    let name = first.map_or("(unknown program)", Process::name);
    // To the viewer, process 0 is the kernel.
    let pid = first.map_or(0, |process| process.pid).max(1);
    let mut events = vec![json!({
        "ph": "M", "name": "process_name", "cat": "__metadata", "pid": pid, "tid": 0, "ts": 0,
        "args": { "name": name },
    })];
    let mut time = 0;
    for (number, heap) in heaps.iter().enumerate() {
        // Times ascend, whenever the processes began.
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

/// An allocator of a dump: all blocks, or one class of them, and which bytes of a block it counts.
struct Allocator {
    name: &'static str,
    class: Option<Class>,
    bytes: fn(&Totals) -> i128,
}

/// Returns the allocators of a dump: all blocks with their usable bytes, all with their requested
/// bytes, and one for each class if the dump contains reports.
///
/// The viewer has one size for each entry of a heap, so other bytes need an allocator of their own.
fn allocators_of(heap: &Heap) -> Vec<Allocator> {
    let usable = Totals::usable;
    let all = [
        Allocator { name: "malloc", class: None, bytes: usable },
        Allocator { name: "requested", class: None, bytes: |sum| sum.req },
    ];
    let one = |class: &Class| Allocator { name: class.name(), class: Some(*class), bytes: usable };
    all.into_iter().chain(heap.classes().iter().map(one)).collect()
}

fn rows(heap: &Heap, class: Option<Class>) -> impl Iterator<Item = &Row> {
    heap.rows.iter().filter(move |row| class.is_none_or(|class| row.kind.class == class))
}

fn allocators(heap: &Heap, number: usize) -> serde_json::Value {
    let mut allocators = serde_json::Map::new();
    for (at, Allocator { name, class, bytes }) in allocators_of(heap).into_iter().enumerate() {
        let totals =
            rows(heap, class).fold(Totals::default(), |sum, row| sum.plus(&heap.amount(row)));
        let scalar = |value: i128, units: &str| json!({ "type": "scalar", "units": units, "value": format!("{value:x}") });
        let attributes = json!({
            "size": scalar(bytes(&totals), "bytes"),
            "object_count": scalar(totals.blocks, "objects"),
        });
        // Each allocator of the trace needs a number of its own.
        let guid = format!("{:x}", (number + 1) * 16 + at);
        allocators.insert(name.to_owned(), json!({ "guid": guid, "attrs": attributes }));
    }
    allocators.into()
}

/// The maps of a trace. A later dump adds to them.
#[derive(Default)]
struct Maps {
    strings: Table<String>,
    nodes: Table<Node>,
    types: Table<u32>,
    written: Written,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    name: u32,
    parent: Option<u32>,
}

/// The number of entries of each map that are written.
#[derive(Default)]
struct Written {
    strings: usize,
    nodes: usize,
    types: usize,
}

/// The properties that entries of a heap are added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    node: u32,
    block_type: u32,
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

/// Returns the id of an entry. Ids begin at 1: to the viewer, a parent of 0 is none.
fn id(number: u32) -> u32 {
    number + 1
}

impl Maps {
    fn heaps(&mut self, heap: &Heap) -> serde_json::Value {
        let mut allocators = serde_json::Map::new();
        // The nodes of threads and stacks, which all classes share.
        let mut known: FxHashMap<(Option<u32>, u32), u32> = FxHashMap::default();
        for Allocator { name, class, bytes } in allocators_of(heap) {
            let mut sums: BTreeMap<Entry, Totals> = BTreeMap::new();
            for row in rows(heap, class) {
                let node = known.entry((row.kind.thread, row.kind.stack));
                let node = *node.or_insert_with(|| self.node(heap, row));
                let block_type = self.block_type(heap, row);
                let sum = sums.entry(Entry { node, block_type }).or_default();
                *sum = sum.plus(&heap.amount(row));
            }
            let entries = || sums.iter();
            allocators.insert(
                name.to_owned(),
                json!({
                    "nodes": entries().map(|(entry, _)| entry.node).collect::<Vec<_>>(),
                    "types": entries().map(|(entry, _)| entry.block_type).collect::<Vec<_>>(),
                    "counts": entries().map(|(_, sum)| sum.blocks).collect::<Vec<_>>(),
                    "sizes": entries().map(|(_, sum)| bytes(sum)).collect::<Vec<_>>(),
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
            parent = Some(id(self.nodes.number(Node { name, parent })));
        }
        parent.unwrap_or(0)
    }

    fn block_type(&mut self, heap: &Heap, row: &Row) -> u32 {
        let name = row.kind.block_type.map_or("[unknown]", |name| heap.text(name));
        let name = id(self.strings.number(name.to_owned()));
        id(self.types.number(name))
    }

    /// Returns the entries that no earlier dump has written.
    fn unwritten(&mut self) -> serde_json::Value {
        let now = Written {
            strings: self.strings.values().len(),
            nodes: self.nodes.values().len(),
            types: self.types.values().len(),
        };
        let Written { strings, nodes, types } = std::mem::replace(&mut self.written, now);
        let numbered = |from: usize| from + 1..;
        let strings: Vec<_> = numbered(strings)
            .zip(&self.strings.values()[strings..])
            .map(|(id, string)| WireString { id, string })
            .collect();
        let nodes: Vec<_> = numbered(nodes)
            .zip(&self.nodes.values()[nodes..])
            .map(|(id, &Node { name, parent })| WireNode { id, name_sid: name, parent })
            .collect();
        let types: Vec<_> = numbered(types)
            .zip(&self.types.values()[types..])
            .map(|(id, &name_sid)| WireNode { id, name_sid, parent: None })
            .collect();
        json!({ "strings": strings, "nodes": nodes, "types": types })
    }
}

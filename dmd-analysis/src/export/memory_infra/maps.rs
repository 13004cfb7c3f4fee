//! The heaps of a memory dump, and the maps that the entries of all heaps of a trace refer to.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::json;

use super::allocators::{HeapAllocator, rows, with_heaps};
use crate::analysis::Totals;
use crate::analysis::number::saturated;
use crate::heap::table::Table;
use crate::heap::{Heap, Row};

/// The maps of a trace. A later dump adds to them.
#[derive(Default)]
pub(super) struct Maps {
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
    /// Returns the heap of each allocator that has one.
    pub(super) fn heaps(&mut self, heap: &Heap) -> serde_json::Value {
        let mut allocators = serde_json::Map::new();
        // The nodes of threads and stacks, which all classes share.
        let mut known: FxHashMap<(Option<u32>, u32), u32> = FxHashMap::default();
        for HeapAllocator { name, class, bytes } in with_heaps(heap) {
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
                    "counts": entries().map(|(_, sum)| saturated(sum.blocks)).collect::<Vec<_>>(),
                    "sizes": entries().map(|(_, sum)| saturated(bytes(sum))).collect::<Vec<_>>(),
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

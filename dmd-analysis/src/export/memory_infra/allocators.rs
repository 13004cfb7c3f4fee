//! The allocators of a memory dump, and the bytes of each.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::analysis::{Class, Totals};
use crate::heap::{Heap, Row};

/// An allocator with a heap: all blocks, or one class of them, and which bytes of a block it
/// counts.
pub(super) struct HeapAllocator {
    pub(super) name: &'static str,
    pub(super) class: Option<Class>,
    pub(super) bytes: fn(&Totals) -> i128,
}

/// Returns the allocators with a heap: all blocks with their usable bytes, all with their requested
/// bytes, and one for each class if the dump contains reports.
///
/// The viewer has one size for each entry of a heap, so other bytes need an allocator of their own.
pub(super) fn with_heaps(heap: &Heap) -> Vec<HeapAllocator> {
    let usable = Totals::usable;
    let all = [
        HeapAllocator { name: "malloc", class: None, bytes: usable },
        HeapAllocator { name: "requested", class: None, bytes: |sum| sum.req },
    ];
    let one =
        |class: &Class| HeapAllocator { name: class.name(), class: Some(*class), bytes: usable };
    all.into_iter().chain(heap.classes().iter().map(one)).collect()
}

pub(super) fn rows(heap: &Heap, class: Option<Class>) -> impl Iterator<Item = &Row> {
    heap.rows.iter().filter(move |row| class.is_none_or(|class| row.kind.class == class))
}

/// The allocators of a trace, each with a number of its own.
#[derive(Default)]
pub(super) struct Allocators {
    numbers: u64,
}

/// The allocators of one memory dump.
#[derive(Default)]
pub(super) struct Sizes {
    /// The attributes of each allocator by its name, whose segments are those of a tree.
    pub(super) allocators: Map<String, Value>,
    /// Which allocator owns which.
    pub(super) owners: Vec<Value>,
}

/// The deepest level of the tree `explicit` whose sums are written. The viewer adds up deeper ones.
const MOST_LEVELS: usize = 32;

impl Allocators {
    /// Returns the allocators of a dump: those with heaps, the tree `explicit` if the dump contains
    /// reports, and `tracing`, the tracker's own memory.
    pub(super) fn sizes(&mut self, heap: &Heap) -> Sizes {
        let mut sizes = Sizes::default();
        for HeapAllocator { name, class, bytes } in with_heaps(heap) {
            let add = |sum: Totals, row| sum.plus(&heap.amount(row));
            let totals = rows(heap, class).fold(Totals::default(), add);
            self.add(&mut sizes, name, bytes(&totals), Some(totals.blocks));
        }
        for (path, totals) in explicit(heap) {
            self.add(&mut sizes, &path, totals.usable(), Some(totals.blocks));
        }
        if let Some(bytes) = heap.accounts().tracker_bytes {
            let owner = self.add(&mut sizes, "tracing", bytes.into(), None);
            // The viewer subtracts a `tracing` that owns nothing from `malloc`, which this memory
            // is no part of. The viewer has no column for a global allocator.
            let owned = self.add(&mut sizes, "global/dmd-tables", bytes.into(), None);
            let edge = json!({
                "source": owner, "target": owned, "importance": 0, "type": "ownership",
            });
            sizes.owners.push(edge);
        }
        sizes
    }

    /// Adds an allocator, and returns its number as the format writes it.
    fn add(&mut self, sizes: &mut Sizes, name: &str, bytes: i128, blocks: Option<i128>) -> String {
        self.numbers += 1;
        let guid = format!("{:x}", self.numbers);
        let scalar = |value: i128, units: &str| json!({ "type": "scalar", "units": units, "value": format!("{value:x}") });
        let mut attributes = Map::from_iter([("size".to_owned(), scalar(bytes, "bytes"))]);
        attributes
            .extend(blocks.map(|blocks| ("object_count".to_owned(), scalar(blocks, "objects"))));
        let allocator = json!({ "guid": guid, "attrs": attributes });
        sizes.allocators.insert(name.to_owned(), allocator);
        guid
    }
}

/// Returns the sums of the tree `explicit`, with each node's path: every block is below the path of
/// its first report.
fn explicit(heap: &Heap) -> BTreeMap<String, Totals> {
    let mut sums: BTreeMap<String, Totals> = BTreeMap::new();
    if heap.classes().is_empty() {
        return sums;
    }
    for row in &heap.rows {
        let path = match (row.kind.class, row.kind.reports.first()) {
            (Class::Untracked, _) => "explicit/untracked".to_owned(),
            (_, None) => "explicit/heap-unclassified".to_owned(),
            (_, Some(report)) => path_below_explicit(heap.text(report.path)),
        };
        let nodes = path.match_indices('/').map(|(end, _)| &path[..end]).take(MOST_LEVELS);
        for node in nodes.chain([path.as_str()]) {
            let amount = heap.amount(row);
            match sums.get_mut(node) {
                Some(sum) => *sum = sum.plus(&amount),
                None => drop(sums.insert(node.to_owned(), amount)),
            }
        }
    }
    sums
}

/// Returns the path of a report as one of the tree `explicit`. Firefox's reports have the name of a
/// function instead of a path.
fn path_below_explicit(path: &str) -> String {
    if path.starts_with("explicit/") {
        path.to_owned()
    } else {
        format!("explicit/{}", path.replace('/', "\\"))
    }
}

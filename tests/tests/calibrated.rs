//! Tests the error of the size formulas without a tracker, against the table in the documents.
//!
//! `cargo xtask calibrate` writes that table.
#![expect(unsafe_code, reason = "an allocator is unsafe by nature")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet, LinkedList, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use memreport::{MallocSizeOf, UsableSize, measure};

memreport::global_allocator!(Counting);

/// The system's allocator, assumed to be glibc's, with a count for each thread.
struct Counting;

thread_local! {
    /// The usable bytes that this thread has allocated and not freed.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: forwards unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: forwarded.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            // SAFETY: a live block.
            let bytes = unsafe { self.usable_size(block, layout) };
            let _ = ALLOCATED.try_with(|sum| sum.set(sum.get().wrapping_add(bytes)));
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: live until the next line.
        let bytes = unsafe { self.usable_size(block, layout) };
        let _ = ALLOCATED.try_with(|sum| sum.set(sum.get().wrapping_sub(bytes)));
        // SAFETY: forwarded.
        unsafe { System.dealloc(block, layout) };
    }
}

// SAFETY: no more than malloc provides, and the same at each call for one layout.
unsafe impl UsableSize for Counting {
    unsafe fn usable_size(&self, _block: *const u8, layout: Layout) -> usize {
        // Rounds up like glibc. A block can be larger if the remainder would be too small for one,
        // which depends on earlier frees and is left out.
        (layout.size() + 8).next_multiple_of(16).max(32) - 8
    }
}

/// The numbers of elements of each type.
const SIZES: [usize; 4] = [1, 10, 100, 1000];

/// The smallest and the largest error of a type, in percent of the truth.
struct Row {
    name: &'static str,
    from: f64,
    to: f64,
}

/// The rows so far.
#[derive(Default)]
struct Table(Vec<Row>);

impl Table {
    /// Measures a type at each size. `make` must free all other blocks before it returns.
    fn row<T: MallocSizeOf>(&mut self, name: &'static str, make: impl Fn(usize) -> T) {
        let errors = SIZES.map(|size| {
            let before = ALLOCATED.get();
            let value = make(size);
            let truth = ALLOCATED.get().wrapping_sub(before) as f64;
            100.0 * (measure(&value).bytes as f64 - truth) / truth
        });
        let from = errors.iter().copied().fold(f64::INFINITY, f64::min);
        let to = errors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.0.push(Row { name, from, to });
    }
}

fn number(size: usize) -> u64 {
    u64::try_from(size).expect("small")
}

fn text(index: usize) -> String {
    format!("a text with the number {index}")
}

fn of_std(table: &mut Table) {
    table.row("`HashMap<u64, u64>`", |size| {
        (0..number(size)).map(|key| (key, key)).collect::<HashMap<_, _>>()
    });
    table.row("`HashMap<String, String>`", |size| {
        (0..size).map(|key| (text(key), text(key))).collect::<HashMap<_, _>>()
    });
    table.row("`HashMap<u64, u64>`, nine of ten removed", |size| {
        // Always the same elements, since the unused capacity depends on them.
        type Same = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;
        let mut map: HashMap<u64, u64, Same> = (0..number(size)).map(|key| (key, key)).collect();
        map.retain(|key, _| key % 10 == 0);
        map
    });
    table.row("`HashSet<u64>`", |size| (0..number(size)).collect::<HashSet<_>>());
    table.row("`BTreeMap<u64, u64>`", |size| {
        (0..number(size)).map(|key| (key, key)).collect::<BTreeMap<_, _>>()
    });
    table.row("`BTreeMap<u64, u64>`, keys as they come", |size| {
        let keys = (0..number(size)).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        keys.fold(BTreeMap::new(), |mut map, key| {
            map.insert(key, key);
            map
        })
    });
    table.row("`BTreeMap<u64, u64>`, emptied by removals", |size| {
        let mut map: BTreeMap<_, _> = (0..number(size)).map(|key| (key, key)).collect();
        map.retain(|_, _| false);
        map
    });
    table.row("`VecDeque<u64>`", |size| (0..number(size)).collect::<VecDeque<_>>());
    table.row("`LinkedList<u64>`", |size| (0..number(size)).collect::<LinkedList<_>>());
    table.row("`vec::IntoIter<u64>`, half of it left", |size| {
        let mut iterator = (0..2 * number(size)).collect::<Vec<_>>().into_iter();
        iterator.by_ref().take(size).for_each(drop);
        iterator
    });
    table.row("`BufReader`", |size| {
        std::io::BufReader::with_capacity(100 * size, std::io::Cursor::new([0_u8; 1]))
    });
    table.row("`LineWriter`", |_| std::io::LineWriter::new(std::io::sink()));
    table.row("`Weak<[u64; 4]>`, the last owner", |size| {
        let weak = |_| std::rc::Rc::downgrade(&std::rc::Rc::new([0_u64; 4]));
        (0..size).map(weak).collect::<Vec<_>>()
    });
}

fn maps_of_crates(table: &mut Table) {
    table.row("hashbrown: `HashMap<u64, u64>`", |size| {
        (0..number(size)).map(|key| (key, key)).collect::<hashbrown::HashMap<_, _>>()
    });
    table.row("indexmap: `IndexMap<u64, u64>`", |size| {
        (0..number(size)).map(|key| (key, key)).collect::<indexmap::IndexMap<_, _>>()
    });
    table.row("ordermap: `OrderMap<u64, u64>`", |size| {
        (0..number(size)).map(|key| (key, key)).collect::<ordermap::OrderMap<_, _>>()
    });
    table.row("lru: `LruCache<u64, u64>`", |size| {
        let mut cache = lru::LruCache::new(std::num::NonZeroUsize::MIN.saturating_add(size));
        (0..number(size)).for_each(|key| assert!(cache.put(key, key).is_none()));
        cache
    });
    table.row("serde_json: an object of numbers", |size| {
        let numbers = (0..size).map(|key| (text(key), serde_json::Value::from(key)));
        serde_json::Value::Object(numbers.collect())
    });
    table.row("http: `HeaderMap`", |size| {
        let name = |index| http::HeaderName::try_from(format!("name-{index}")).expect("a name");
        let value = |index| http::HeaderValue::try_from(text(index)).expect("a value");
        (0..size).map(|index| (name(index), value(index))).collect::<http::HeaderMap>()
    });
    table.row("petgraph: `StableGraph<u64, u64>`, a path", |size| {
        let mut graph = petgraph::stable_graph::StableGraph::<u64, u64>::new();
        let nodes: Vec<_> = (0..=number(size)).map(|weight| graph.add_node(weight)).collect();
        nodes.windows(2).for_each(|pair| _ = graph.add_edge(pair[0], pair[1], 1));
        graph
    });
    table.row("petgraph: `DiGraphMap<u64, u64>`, a path", |size| {
        (0..number(size))
            .map(|node| (node, node + 1, 1))
            .collect::<petgraph::graphmap::DiGraphMap<u64, u64>>()
    });
}

fn sequences_of_crates(table: &mut Table) {
    table.row("slab: `Slab<u64>`", |size| {
        (0..size).map(|key| (key, number(key))).collect::<slab::Slab<_>>()
    });
    table.row("slotmap: `SlotMap<u64>`", |size| {
        let mut map = slotmap::SlotMap::new();
        (0..number(size)).for_each(|value| _ = map.insert(value));
        map
    });
    table.row("thin-vec: `ThinVec<u64>`", |size| {
        (0..number(size)).collect::<thin_vec::ThinVec<_>>()
    });
    table.row("crossbeam-queue: `ArrayQueue<u64>`", crossbeam_queue::ArrayQueue::<u64>::new);
    table.row("crossbeam-queue: `SegQueue<u64>`", |size| {
        let queue = crossbeam_queue::SegQueue::new();
        (0..number(size)).for_each(|value| queue.push(value));
        queue
    });
    table.row("ndarray: `Array1<u64>`", ndarray::Array1::<u64>::zeros);
    table.row("num-bigint: `BigUint` of so many bytes", |size| {
        num_bigint::BigUint::from_bytes_le(&vec![1; size])
    });
    table.row("bumpalo: `Bump`", |size| {
        let arena = bumpalo::Bump::new();
        (0..number(size)).for_each(|value| _ = arena.alloc(value));
        arena
    });
}

fn shared_of_crates(table: &mut Table) {
    table.row("bytes: `Bytes`", |size| bytes::Bytes::from(vec![1; 10 * size]));
    table.row("bytes: `Bytes`, the last half", |size| {
        bytes::Bytes::from(vec![1; 10 * size]).slice(5 * size..)
    });
    table.row("arrow-buffer: `Buffer`", |size| arrow_buffer::Buffer::from_vec(vec![1_u64; size]));
    table.row("smol_str: `SmolStr` of 24 bytes and more", |size| {
        smol_str::SmolStr::from("t".repeat(23 + size))
    });
    table.row("triomphe: `Arc<[u64; 4]>`", |size| {
        (0..size).map(|_| triomphe::Arc::new([0_u64; 4])).collect::<Vec<_>>()
    });
}

fn interned_and_persistent(table: &mut Table) {
    table.row("roaring: `RoaringBitmap`, every hundredth number", |size| {
        let numbers = (0..number(size)).map(|value| u32::try_from(100 * value).expect("small"));
        numbers.collect::<roaring::RoaringBitmap>()
    });
    table.row("lasso: `Rodeo`", |size| {
        let mut rodeo: lasso::Rodeo = lasso::Rodeo::new();
        (0..size).for_each(|index| _ = rodeo.get_or_intern(text(index)));
        rodeo
    });
    table.row("string-interner: `StringInterner`", |size| {
        type Interner = string_interner::StringInterner<string_interner::backend::StringBackend>;
        (0..size).map(text).collect::<Interner>()
    });
    table.row("im: `Vector<u64>`", |size| (0..number(size)).collect::<im::Vector<_>>());
    table.row("im: `OrdMap<u64, u64>`", |size| {
        (0..number(size)).map(|key| (key, key)).collect::<im::OrdMap<u64, u64>>()
    });
    table.row("imbl: `OrdMap<u64, u64>`", |size| {
        (0..number(size)).map(|key| (key, key)).collect::<imbl::OrdMap<u64, u64>>()
    });
    table.row("rpds: `List<u64>`", |size| (0..number(size)).collect::<rpds::List<_>>());
    table.row("archery: `SharedPointer<[u64; 4], RcK>`", |size| {
        let pointer = |_| archery::SharedPointer::<_, archery::RcK>::new([0_u64; 4]);
        (0..size).map(pointer).collect::<Vec<_>>()
    });
    table.row("generational-arena: `Arena<u64>`", |size| {
        (0..number(size)).collect::<generational_arena::Arena<_>>()
    });
    table.row("simd-json: an object of numbers", |size| {
        let mut object = simd_json::owned::Object::default();
        (0..size)
            .for_each(|key| _ = object.insert(text(key), simd_json::OwnedValue::from(number(key))));
        object
    });
}

fn rows() -> Vec<Row> {
    let mut table = Table::default();
    of_std(&mut table);
    maps_of_crates(&mut table);
    sequences_of_crates(&mut table);
    shared_of_crates(&mut table);
    interned_and_persistent(&mut table);
    table.0
}

/// The head of the table in the document.
const HEAD: &str = "| type | without a tracker it reports |\n|---|---|\n";

fn written(rows: &[Row]) -> String {
    let mut text = HEAD.to_owned();
    for Row { name, from, to } in rows {
        // Zero has no sign.
        let shown = |error: &f64| if error.abs() < 0.05 { 0.0 } else { *error };
        let (from, to) = (shown(from), shown(to));
        let _ = if (to - from).abs() < 0.05 {
            writeln!(text, "| {name} | {from:+.1} % |")
        } else {
            writeln!(text, "| {name} | {from:+.1} % to {to:+.1} % |")
        };
    }
    text
}

fn read(line: &str) -> Option<(String, f64, f64)> {
    let (name, range) = line.strip_prefix("| ")?.strip_suffix(" % |")?.rsplit_once(" | ")?;
    let (from, to) = range.split_once(" % to ").unwrap_or((range, range));
    Some((name.to_owned(), from.parse().ok()?, to.parse().ok()?))
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a workspace")
        .join("docs/guide/src/reference/impls.md")
}

/// The tolerance for other versions of std or of a crate, in percent.
const TOLERANCE: f64 = 3.0;

#[test]
fn the_documents_say_how_far_formulas_are_off() {
    let rows = rows();
    if let Some(path) = std::env::var_os("WRITE_CALIBRATION") {
        std::fs::write(path, written(&rows)).expect("the table can be written");
        return;
    }
    let text = std::fs::read_to_string(document()).expect("the document is there");
    let known: Vec<_> = text.lines().filter_map(read).collect();
    for Row { name, from, to } in rows {
        let found = known.iter().find(|(known, ..)| known == name);
        let Some((_, known_from, known_to)) = found else {
            panic!("{name} is missing in impls.md: run `cargo xtask calibrate`");
        };
        assert!(
            (from - known_from).abs() <= TOLERANCE && (to - known_to).abs() <= TOLERANCE,
            "{name}: {from:+.1} % to {to:+.1} %, unlike in impls.md: run `cargo xtask calibrate`"
        );
    }
}

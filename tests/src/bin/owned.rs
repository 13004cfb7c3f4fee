//! A heap of known owners: collections within collections, in statics of every kind.
//!
//! `owned REPORT` saves DMD's view of it, and prints a line for each static: its name, and the
//! bytes and the number of its blocks, which an allocator of its own counts.
#![expect(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hint::black_box;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, RwLock, Weak};

use memreport::UsableSize;

dmd::global_allocator!(Counted(System): Counted<System>);

thread_local! {
    /// The bytes and blocks that this thread has allocated, without those that it freed.
    static BYTES: Cell<usize> = const { Cell::new(0) };
    static BLOCKS: Cell<usize> = const { Cell::new(0) };
}

/// An allocator that counts bytes and blocks.
struct Counted<A>(A);

// SAFETY: every call goes to the inner allocator. `realloc` is the default: a new block and a copy.
unsafe impl<A: UsableSize> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let block = unsafe { self.0.alloc(layout) };
        if !block.is_null() {
            // SAFETY: a live block of the inner allocator.
            let usable = unsafe { self.0.usable_size(block, layout) };
            BYTES.set(BYTES.get().wrapping_add(usable));
            BLOCKS.set(BLOCKS.get().wrapping_add(1));
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: a live block of the inner allocator.
        let usable = unsafe { self.0.usable_size(block, layout) };
        BYTES.set(BYTES.get().wrapping_sub(usable));
        BLOCKS.set(BLOCKS.get().wrapping_sub(1));
        // SAFETY: the caller's contract.
        unsafe { self.0.dealloc(block, layout) };
    }
}

// SAFETY: the inner allocator's answer.
unsafe impl<A: UsableSize> UsableSize for Counted<A> {
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller's contract.
        unsafe { self.0.usable_size(block, layout) }
    }
}

trait Shape {
    fn area(&self) -> f64;
}

struct Circle {
    radius: f64,
    label: String,
}

struct Square {
    sides: Vec<f64>,
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.radius * self.label.len() as f64
    }
}

impl Shape for Square {
    fn area(&self) -> f64 {
        self.sides.iter().sum()
    }
}

enum Json {
    Null,
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

struct Document {
    title: String,
    pages: Vec<Vec<u32>>,
}

struct Index {
    terms: HashMap<Arc<str>, u32>,
    documents: Vec<Document>,
    recent: VecDeque<Box<[u8; 100]>>,
}

struct Node {
    parent: Weak<Node>,
    below: Mutex<Vec<Arc<Node>>>,
    name: Box<str>,
}

/// Collections from which entries were removed: the pointers to them are still there, unused.
struct Emptied {
    #[expect(clippy::vec_box, reason = "each entry must be a block of its own")]
    list: Vec<Box<Entry>>,
    queue: VecDeque<Box<Entry>>,
    tree: BTreeMap<u8, Box<Entry>>,
    table: HashMap<u8, Box<Entry>>,
}

type Entry = [u8; 1200];

static INDEX: OnceLock<Mutex<Index>> = OnceLock::new();
static SHAPES: Mutex<Vec<Box<dyn Shape + Send>>> = Mutex::new(Vec::new());
static SETTINGS: LazyLock<RwLock<Json>> = LazyLock::new(|| RwLock::new(settings()));
static NODES: OnceLock<Arc<Node>> = OnceLock::new();
static WORDS: Mutex<Option<HashSet<String>>> = Mutex::new(None);
static TABLE: Mutex<BTreeMap<u64, Box<u64>>> = Mutex::new(BTreeMap::new());
/// The addresses of blocks that were in `EMPTIED`.
static REMOVED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static EMPTIED: Mutex<Option<Emptied>> = Mutex::new(None);

fn main() -> ExitCode {
    match std::env::args().nth(1).map_or_else(|| Err(io::ErrorKind::InvalidInput.into()), save) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn save(report: String) -> io::Result<()> {
    let lines = [
        counted("INDEX", || drop(INDEX.set(Mutex::new(index())))),
        counted("SHAPES", || *SHAPES.lock().expect("not poisoned") = shapes()),
        counted("SETTINGS", || drop(SETTINGS.read())),
        counted("NODES", || drop(NODES.set(nodes()))),
        counted("WORDS", || *WORDS.lock().expect("not poisoned") = Some(words())),
        counted("TABLE", || *TABLE.lock().expect("not poisoned") = table()),
        counted("REMOVED", || *REMOVED.lock().expect("not poisoned") = removed()),
        counted("EMPTIED", || *EMPTIED.lock().expect("not poisoned") = Some(emptied())),
    ];
    use_all();
    memreport::snapshot().save(report)?;
    io::Write::write_all(&mut io::stdout(), lines.concat().as_bytes())
}

/// Returns the line of a static that `fill` fills.
fn counted(name: &str, fill: impl FnOnce()) -> String {
    let before = (BYTES.get(), BLOCKS.get());
    fill();
    let after = (BYTES.get(), BLOCKS.get());
    let (bytes, blocks) = (after.0.wrapping_sub(before.0), after.1.wrapping_sub(before.1));
    format!("{name} {bytes} {blocks}\n")
}

fn index() -> Index {
    let terms = (0..500).map(|n| (Arc::from(format!("term number {n}")), n)).collect();
    let page = |n: u32| (0..20 + n % 7).collect();
    let document = |n| Document {
        title: format!("document {n:04}: {}", "x".repeat(14)),
        pages: (0..4).map(page).collect(),
    };
    let documents = (0..100).map(document).collect();
    Index { terms, documents, recent: (0..30).map(|n| Box::new([n; 100])).collect() }
}

fn shapes() -> Vec<Box<dyn Shape + Send>> {
    let shape = |n: u32| -> Box<dyn Shape + Send> {
        match n % 2 {
            0 => {
                Box::new(Circle { radius: f64::from(n), label: format!("a circle of radius {n}") })
            }
            _ => Box::new(Square { sides: vec![f64::from(n); 4] }),
        }
    };
    (0..60).map(shape).collect()
}

fn settings() -> Json {
    let entry = |n: u32| {
        let list = vec![Json::Text(format!("value of the key {n}")), Json::Null];
        (format!("key number {n:05}"), Json::List(list))
    };
    Json::Object((0..80).map(entry).collect())
}

fn nodes() -> Arc<Node> {
    let root = Arc::new(Node {
        parent: Weak::new(),
        below: Mutex::new(Vec::new()),
        name: "the root of all nodes".into(),
    });
    let child = |n| {
        Arc::new(Node {
            parent: Arc::downgrade(&root),
            below: Mutex::new(Vec::new()),
            name: format!("a node with the number {n}").into(),
        })
    };
    *root.below.lock().expect("not poisoned") = (0..50).map(child).collect();
    root
}

fn words() -> HashSet<String> {
    (0..200).map(|n| format!("a word of the set, number {n}")).collect()
}

fn table() -> BTreeMap<u64, Box<u64>> {
    (0..300).map(|n| (n, Box::new(n))).collect()
}

/// Returns the addresses of blocks, as numbers.
fn removed() -> Vec<usize> {
    (0..40_u8).map(|n| Box::into_raw(Box::<Entry>::new([n; _])).expose_provenance()).collect()
}

/// Puts the removed blocks into collections, together with one more in each, and takes them out.
fn emptied() -> Emptied {
    let addresses = REMOVED.lock().expect("not poisoned");
    let mut boxes = addresses.iter().map(|address| {
        let block: *mut Entry = std::ptr::with_exposed_provenance_mut(*address);
        // SAFETY: a box that was given up, and that is given up again below.
        unsafe { Box::from_raw(block) }
    });
    let mut few = || boxes.by_ref().take(10).collect::<Vec<_>>();
    let kept = || Box::<Entry>::new([0; _]);
    let mut list = few();
    let mut queue = VecDeque::from(few());
    let mut tree: BTreeMap<u8, _> = (1..).zip(few()).collect();
    let mut table: HashMap<u8, _> = (1..).zip(few()).collect();
    list.insert(0, kept());
    queue.push_front(kept());
    tree.insert(0, kept());
    table.insert(0, kept());
    list.drain(1..).map(Box::into_raw).for_each(drop);
    queue.drain(1..).map(Box::into_raw).for_each(drop);
    (1..=10).filter_map(|n| tree.remove(&n)).map(Box::into_raw).for_each(drop);
    (1..=10).filter_map(|n| table.remove(&n)).map(Box::into_raw).for_each(drop);
    Emptied { list, queue, tree, table }
}

/// Uses all fields, so that none is left out.
fn use_all() {
    let index = INDEX.get().expect("filled").lock().expect("not poisoned");
    let pages: usize = index.documents.iter().map(|one| one.title.len() + one.pages.len()).sum();
    let shapes = SHAPES.lock().expect("not poisoned");
    let area: f64 = shapes.iter().map(|shape| shape.area()).sum();
    let settings = SETTINGS.read().expect("not poisoned");
    let node = NODES.get().expect("filled");
    let below = node.below.lock().expect("not poisoned");
    let parents = below.iter().filter(|node| node.parent.upgrade().is_some()).count();
    black_box((index.terms.len(), index.recent.len(), pages, area, json_size(&settings)));
    let emptied = EMPTIED.lock().expect("not poisoned");
    let emptied = emptied.as_ref().expect("filled");
    black_box((&emptied.list, &emptied.queue, &emptied.tree, &emptied.table));
    black_box((node.name.len(), parents, WORDS.lock().is_ok(), TABLE.lock().is_ok()));
}

fn json_size(json: &Json) -> usize {
    match json {
        Json::Null => 0,
        Json::Text(text) => text.len(),
        Json::List(list) => list.iter().map(json_size).sum(),
        Json::Object(object) => {
            object.iter().map(|(key, value)| key.len() + json_size(value)).sum()
        }
    }
}

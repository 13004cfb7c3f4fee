//! A heap of libraries that nothing measures: values of foreign types in a reported static, JSON
//! that `serde_json` has parsed, and blocks of a scope.
//!
//! `attributed REPORT` saves a snapshot, and prints the bytes of each kind by the allocator's
//! counters.
#![expect(clippy::print_stdout, reason = "a program")]

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;
use memreport::MallocSizeOf;
use serde_json::Value;

dmd::global_allocator!();

#[derive(MallocSizeOf)]
struct Shelf {
    titles: Vec<String>,
    cover: Option<Arc<[u8]>>,
    #[malloc_size_of(reachable)]
    packed: Vec<GzEncoder<Vec<u8>>>,
    #[malloc_size_of(reachable)]
    visitor: Option<Visitor>,
}

/// A value whose type nothing measures, with a block of its own and one that the shelf counts.
struct Visitor {
    own: Box<[u64]>,
    cover: Arc<[u8]>,
}

static SHELF: Mutex<Shelf> =
    Mutex::new(Shelf { titles: Vec::new(), cover: None, packed: Vec::new(), visitor: None });

static PARSED: Mutex<Option<Value>> = Mutex::new(None);

static OPEN: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/shelf", SHELF, "Books.");
memreport::reporter_of_crate!("explicit/lib/json", ["serde-json", "serde_core"], "Parsed JSON.");
memreport::reporter_of_crate!("explicit/lib/nothing", "no_such_crate");
memreport::reporter_of_scope!("explicit/requests", "request", "Open requests.");

/// Prints the bytes by which the heap has grown during `work`.
fn grown<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let live = || memreport::heap_counters().map_or(0, |counters| counters.live_bytes());
    let before = live();
    let result = work();
    println!("{name} {}", live() - before);
    result
}

/// Returns an encoder that has taken some text and still holds its tables.
fn encoder(number: usize) -> io::Result<GzEncoder<Vec<u8>>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for line in 0..200 {
        writeln!(encoder, "book {number}, line {}", line * number)?;
    }
    Ok(encoder)
}

/// Allocates in scopes within the scope `request`.
fn open_requests(count: usize) {
    memreport::scope!("request");
    memreport::scope!("body");
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.extend((0..count).map(|length| vec![1; length]));
}

fn run(report: &str) -> io::Result<()> {
    let mut shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    grown("titles", || shelf.titles.extend((0..100).map(|number| format!("book {number}"))));
    let cover: Arc<[u8]> = grown("cover", || vec![7; 5000].into());
    shelf.cover = Some(Arc::clone(&cover));
    grown("packed", || {
        shelf.packed = (0..3).map(encoder).collect::<io::Result<_>>()?;
        io::Result::Ok(())
    })?;
    shelf.visitor = Some(grown("visitor", || Visitor { own: vec![1; 300].into(), cover }));
    drop(shelf);
    let text = format!("[{}]", vec![r#"{"key": [1, 2.5, "text"], "other": {}}"#; 500].join(","));
    let parsed = grown("json", || serde_json::from_str(&text))?;
    *PARSED.lock().unwrap_or_else(PoisonError::into_inner) = Some(parsed);
    // The name of a scope is the tracker's, when it is entered first.
    open_requests(0);
    grown("requests", || open_requests(300));
    memreport::snapshot().save(report)?;
    let shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    let visitor = shelf.visitor.as_ref();
    std::hint::black_box(visitor.map_or(0, |visitor| visitor.own.len() + visitor.cover.len()));
    Ok(())
}

fn main() -> ExitCode {
    match std::env::args()
        .nth(1)
        .map_or_else(|| Err(io::ErrorKind::InvalidInput.into()), |report| run(&report))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

//! Wrongly reported blocks, each in one way that DMD has a suggestion for: `remedies CASE REPORT`.

use std::hint::black_box;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use memreport::{MallocSizeOf, Ops, Reports, Snapshot};

dmd::global_allocator!();

/// Saves a report and a dump.
type Save<'s> = &'s dyn Fn() -> io::Result<()>;

type Case = (&'static str, fn(Save<'_>) -> io::Result<()>);

const CASES: [Case; 10] = [
    ("skipped", skipped),
    ("static", unreported_static),
    ("by-hand", by_hand),
    ("boxed", boxed),
    ("derive", derive),
    ("register", register),
    ("feature", feature),
    ("shared", shared),
    ("twice", twice),
    ("half", half),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.as_slice() {
        [case, report] => {
            let save = || Snapshot::save(&memreport::snapshot(), report);
            match CASES.iter().find(|(name, _)| name == case) {
                Some((_, run)) => run(&save),
                None => Err(io::Error::other("there is no such case")),
            }
        }
        _ => Err(io::Error::other("remedies CASE REPORT")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed too, only the exit code remains.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// A type with an unmeasured field that owns blocks.
#[derive(MallocSizeOf)]
struct Catalogue {
    names: Vec<u8>,
    #[malloc_size_of(ignore = "made again when needed")]
    cache: Vec<Vec<u8>>,
}

fn skipped(save: Save<'_>) -> io::Result<()> {
    let cache = (0..3).map(|_| vec![1; 777]).collect();
    let catalogue = Arc::new(Catalogue { names: vec![1; 333], cache });
    let _registration = memreport::report_value("explicit/catalogue", &catalogue, "A catalogue.");
    save()
}

static CACHE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn unreported_static(save: Save<'_>) -> io::Result<()> {
    if let Ok(mut cache) = CACHE.lock() {
        cache.extend((0..5).map(|_| vec![1; 888]));
    }
    save()
}

/// A type measured by hand, and not completely.
struct Partly {
    names: Vec<u8>,
    cache: Vec<u8>,
}

impl MallocSizeOf for Partly {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.names);
    }
}

static PARTLY: Mutex<Partly> = Mutex::new(Partly { names: Vec::new(), cache: Vec::new() });

fn report_partly(reports: &mut Reports<'_>) {
    reports.measure("explicit/partly", &PARTLY, "Names, without their cache.");
}

fn by_hand(save: Save<'_>) -> io::Result<()> {
    if let Ok(mut partly) = PARTLY.lock() {
        partly.names = vec![1; 333];
        partly.cache = vec![1; 999];
    }
    memreport::register(report_partly).forever();
    save()?;
    // The cache is unused, but the compiler must not see it.
    black_box(PARTLY.lock().map_or(0, |partly| partly.cache.len()));
    Ok(())
}

fn boxed(save: Save<'_>) -> io::Result<()> {
    let partly = Box::new(Partly { names: vec![1; 333], cache: vec![1; 999] });
    let shared = Arc::new(Mutex::new(partly));
    let _registration = memreport::report_value("explicit/boxed", &shared, "Names, boxed.");
    save()
}

/// A type that cannot be measured.
struct Tree {
    _leaves: [u8; 1111],
}

fn derive(save: Save<'_>) -> io::Result<()> {
    let tree = black_box(Box::new(Tree { _leaves: [1; 1111] }));
    save()?;
    drop(black_box(tree));
    Ok(())
}

/// A type that can be measured; some of its values are.
#[derive(MallocSizeOf)]
struct Page {
    text: Vec<u8>,
    _margin: [u8; 1222],
}

impl Page {
    fn new() -> Self {
        Page { text: vec![1; 55], _margin: [1; 1222] }
    }
}

fn register(save: Save<'_>) -> io::Result<()> {
    let known = Arc::new(Mutex::new(vec![Page::new()]));
    let _registration = memreport::report_value("explicit/pages", &known, "Pages.");
    let unknown = black_box(Box::new(Page::new()));
    save()?;
    drop(black_box(unknown));
    Ok(())
}

fn feature(save: Save<'_>) -> io::Result<()> {
    let text = format!("[{}1]", "1,".repeat(99));
    let value: serde_json::Value = serde_json::from_str(&text)?;
    let value = black_box(value);
    save()?;
    drop(black_box(value));
    Ok(())
}

/// An owner of a shared block. Both owners report it as theirs.
#[derive(MallocSizeOf)]
struct Store {
    #[malloc_size_of(shared = here)]
    pages: Arc<[u8; 1333]>,
}

#[derive(MallocSizeOf)]
struct View {
    #[malloc_size_of(shared = here)]
    page: Arc<[u8; 1333]>,
}

fn shared(save: Save<'_>) -> io::Result<()> {
    let pages = Arc::new([1; 1333]);
    let store = Arc::new(Mutex::new(Store { pages: Arc::clone(&pages) }));
    let view = Arc::new(Mutex::new(View { page: pages }));
    let _first = memreport::report_value("explicit/store", &store, "The pages.");
    let _second = memreport::report_value("explicit/view", &view, "A view of a page.");
    save()
}

static NAMES: Mutex<Vec<Page>> = Mutex::new(Vec::new());

fn report_names(reports: &mut Reports<'_>) {
    reports.measure("explicit/names", &NAMES, "The names.");
}

fn report_names_again(reports: &mut Reports<'_>) {
    reports.measure("explicit/index", &NAMES, "The names, for the index.");
}

fn twice(save: Save<'_>) -> io::Result<()> {
    if let Ok(mut names) = NAMES.lock() {
        names.push(Page::new());
    }
    memreport::register(report_names).forever();
    memreport::register(report_names_again).forever();
    save()
}

fn half(save: Save<'_>) -> io::Result<()> {
    let mut texts: Vec<Vec<u8>> = (0..2).map(|_| black_box(vec![1; 4321])).collect();
    if let Ok(mut names) = NAMES.lock() {
        // Of two blocks from one site, a static holds one and an unknown owner the other.
        names.push(Page { text: texts.swap_remove(0), _margin: [1; 1222] });
    }
    save()?;
    drop(black_box(texts));
    Ok(())
}

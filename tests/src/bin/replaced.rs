//! A program whose threads replace blocks in the middle of each collection:
//! `replaced SNAPSHOTS [late=OPTIONS] [grow] [busy]`.
//!
//! One table is measured, then another thread replaces the blocks of both, and then the other table
//! is measured. With `grow`, that thread also enlarges the second table. With `busy`, a third
//! thread allocates and frees 40 MB over and over. With `late`, tracking begins with these options
//! when all blocks are there. Prints a line for each snapshot: by how many bytes
//! `heap-unclassified` differs from the bytes that no reporter reports, `heap-allocated`, and the
//! notes.

use std::hint::black_box;
use std::io::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use memreport::{Kind, MallocSizeOf, Reports, Snapshot};

dmd::global_allocator!();

/// Blocks in each table, and their size: each table has 16 MB.
const BLOCKS: usize = 4000;
const SIZE: usize = 4000;

/// The blocks by which `grow` enlarges the second table.
const MORE: usize = 500;

/// The unreported bytes.
const UNREPORTED: usize = 8_000_000;

#[derive(Default, MallocSizeOf)]
struct Table {
    blocks: Vec<Vec<u8>>,
}

impl Table {
    /// Replaces all blocks by `count` others, which are allocated before the old ones are freed.
    fn replace(&mut self, count: usize) {
        // The list itself stays.
        let mut blocks: Vec<_> = (0..count).map(|_| black_box(vec![1; SIZE])).collect();
        self.blocks.resize_with(count, Vec::new);
        self.blocks.swap_with_slice(&mut blocks);
    }
}

static TABLES: [Mutex<Table>; 2] = [const { Mutex::new(Table { blocks: Vec::new() }) }; 2];

/// The number of times that 40 MB were allocated and freed.
static ROUNDS: AtomicUsize = AtomicUsize::new(0);

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn table(index: usize) -> MutexGuard<'static, Table> {
    TABLES[index].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates and frees blocks until the program ends.
fn be_busy() {
    while !IS_OVER.load(Relaxed) {
        drop(black_box((0..1000).map(|_| Vec::with_capacity(40_000)).collect::<Vec<Vec<u8>>>()));
        ROUNDS.fetch_add(1, Relaxed);
    }
}

/// Replaces the blocks of both tables at each request, and answers.
fn replace_on_request(requests: &Receiver<()>, answers: &Sender<()>, growth: usize) {
    for () in requests {
        table(0).replace(BLOCKS);
        let count = table(1).blocks.len() + growth;
        table(1).replace(count);
        if answers.send(()).is_err() {
            return;
        }
    }
}

/// Returns the difference of `heap-unclassified` from the truth, and `heap-allocated`.
fn figures(snapshot: &Snapshot) -> (i64, i64) {
    let amount = |report: &memreport::Report| report.amount;
    let heap: i64 =
        snapshot.reports.iter().filter(|found| found.path == "heap-allocated").map(amount).sum();
    let is_counted = |report: &&memreport::Report| {
        report.kind == Kind::Heap && report.path.starts_with("explicit/")
    };
    let reported: i64 = snapshot.reports.iter().filter(is_counted).map(amount).sum();
    let truth = i64::try_from(UNREPORTED).unwrap_or(i64::MAX);
    (heap - reported - truth, heap)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let count: usize = words.first().ok_or("how many snapshots?")?.parse()?;
    table(0).replace(BLOCKS);
    table(1).replace(BLOCKS);
    let unreported = black_box(vec![1_u8; UNREPORTED]);
    if let Some(options) = words.iter().find_map(|word| word.strip_prefix("late=")) {
        dmd::start(options.parse()?)?;
    }
    let (is_busy, growth) = (has("busy"), if has("grow") { MORE } else { 0 });
    let ((requests, requested), (answers, answered)) = (channel(), channel());
    let worker = thread::spawn(move || replace_on_request(&requested, &answers, growth));
    let busy = is_busy.then(|| thread::spawn(be_busy));

    // Reporters that are registered at run time run in the order of their registration.
    let measure = |index: usize, path: &'static str| {
        memreport::register(move |reports: &mut Reports<'_>| {
            reports.measure(path, &TABLES[index], "A table.");
        })
    };
    let _first = measure(0, "explicit/replaced/first");
    let exchange = Mutex::new((requests, answered));
    let replacing = memreport::register(move |_: &mut Reports<'_>| {
        let (requests, answered) = &*exchange.lock().unwrap_or_else(PoisonError::into_inner);
        // If the worker has ended, the test finds fewer differences than lines.
        let _ = requests.send(()).map(|()| answered.recv());
        // Two rounds later, no block of the busy thread is from before the collection.
        let begin = ROUNDS.load(Relaxed);
        while is_busy && ROUNDS.load(Relaxed) < begin + 2 {
            thread::yield_now();
        }
    });
    let _second = measure(1, "explicit/replaced/second");

    for _ in 0..count {
        let snapshot = memreport::snapshot();
        let (difference, heap) = figures(&snapshot);
        writeln!(std::io::stdout(), "{difference} {heap} {}", snapshot.notes.join("; "))?;
    }
    IS_OVER.store(true, Relaxed);
    // Drops the sender, which ends the worker.
    drop(replacing);
    let threads = [Some(worker), busy].into_iter().flatten();
    threads.for_each(|thread| thread.join().expect("it does not panic"));
    black_box(unreported);
    Ok(())
}

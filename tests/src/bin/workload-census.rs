//! Takes `argv[2]` censuses of `argv[1]` live blocks while another thread allocates; prints a line
//! of JSON for each.
//!
//! Times are processor times of the requesting thread, equal to wall times on an idle machine.
//! Reporters measure their own time. The remaining time of a collection is measured in mode `live`
//! without reports: it walks and groups all blocks, and has no claims.
#![expect(clippy::vec_box, reason = "boxes are what is counted")]

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dmd::census::{Axis, Breakdown, Split};
use memreport::{Collector, MallocSizeOf, Reports};
use memreport_workload::processor_time;

dmd::global_allocator!();

/// Some blocks of each kind in each store.
#[derive(Default, MallocSizeOf)]
struct Store {
    nodes: Vec<Box<[u64; 4]>>,
    texts: Vec<String>,
    lists: Vec<Vec<u32>>,
}

const STORES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

static STORED: Mutex<Vec<Store>> = Mutex::new(Vec::new());

/// Unreported: one block in eight.
static DARK: Mutex<Vec<Box<[u64; 4]>>> = Mutex::new(Vec::new());

/// True if reporters report.
static REPORTS: AtomicBool = AtomicBool::new(true);

/// The nanoseconds that reporters took.
static MEASURING: AtomicU64 = AtomicU64::new(0);

memreport::reporter!(report);

fn report(reports: &mut Reports<'_>) {
    if !REPORTS.load(Relaxed) {
        return;
    }
    let begin = processor_time().unwrap_or_default();
    for (name, store) in STORES.iter().zip(&*stored()) {
        reports.measure(format!("explicit/census/{name}"), store, "A store.");
    }
    let end = processor_time().unwrap_or_default();
    MEASURING.store(nanoseconds(end.saturating_sub(begin)), Relaxed);
}

fn stored() -> std::sync::MutexGuard<'static, Vec<Store>> {
    STORED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// One of three functions that call each other, for hundreds of stacks.
#[inline(never)]
fn fill<const TURN: usize>(store: &mut Store, path: usize, count: usize) -> usize {
    let below = match path {
        0 => {
            add(store, count);
            0
        }
        _ => match path % 3 {
            0 => fill::<0>(store, path / 3, count),
            1 => fill::<1>(store, path / 3, count),
            _ => fill::<2>(store, path / 3, count),
        },
    };
    // Work after the call: without it the compiler would turn the call into a jump, without a
    // frame.
    black_box(below) + TURN
}

/// Makes this many blocks, of three kinds and several sizes.
#[inline(never)]
fn add(store: &mut Store, count: usize) {
    for number in 0..count {
        match number % 3 {
            0 => store.nodes.push(Box::new([1; 4])),
            1 => store.texts.push("x".repeat(8 + number % 40)),
            _ => store.lists.push(vec![1; 2 + number % 12]),
        }
    }
}

fn build(count: usize) {
    const PATHS: usize = 243;
    let mut stores: Vec<Store> = STORES.iter().map(|_| Store::default()).collect();
    let each = count / 8 * 7 / STORES.len() / PATHS;
    for store in &mut stores {
        for path in 0..PATHS {
            black_box(fill::<0>(store, path, each));
        }
    }
    *stored() = stores;
    let dark = (0..count / 8).map(|_| Box::new([2; 4])).collect();
    *DARK.lock().unwrap_or_else(PoisonError::into_inner) = dark;
}

/// The other thread, which makes short-lived blocks.
#[derive(Default)]
struct Other {
    is_done: AtomicBool,
    blocks: AtomicU64,
    longest: AtomicU64,
}

impl Other {
    fn work(&self) {
        let mut kept: Vec<Vec<u8>> = vec![Vec::new(); 1000];
        let mut last = Instant::now();
        let mut number = 0_usize;
        while !self.is_done.load(Relaxed) {
            number += 1;
            kept[number % 1000] = black_box(Vec::with_capacity(16 + number % 500));
            self.blocks.fetch_add(1, Relaxed);
            let now = Instant::now();
            self.longest.fetch_max(nanoseconds(now - last), Relaxed);
            last = now;
        }
    }

    /// Runs `work`. Returns the other thread's blocks per second meanwhile, and its longest pause
    /// in milliseconds.
    fn watched<T>(&self, work: impl FnOnce() -> T) -> (T, Duration, [f64; 2]) {
        let blocks = self.blocks.load(Relaxed);
        self.longest.store(0, Relaxed);
        let begin = Instant::now();
        let done = work();
        let time = begin.elapsed();
        let made = (self.blocks.load(Relaxed) - blocks) as f64;
        (done, time, [made / time.as_secs_f64(), self.longest.load(Relaxed) as f64 / 1e6])
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut words = std::env::args().skip(1);
    let count: usize = words.next().ok_or("how many blocks?")?.parse()?;
    let rounds: usize = words.next().ok_or("how many times?")?.parse()?;
    build(count);
    let breakdown: Breakdown = Split::by(Axis::reporter())
        .then(Split::by(Axis::Type).then(Split::by(Axis::stack())))
        .into();
    let other = Other::default();
    thread::scope(|scope| {
        scope.spawn(|| other.work());
        let done = (0..rounds).try_for_each(|_| round(&breakdown, &other));
        other.is_done.store(true, Relaxed);
        done
    })
}

/// Uses this much processor time.
fn spin(time: Duration) -> io::Result<()> {
    let begin = processor_time()?;
    while processor_time()?.saturating_sub(begin) < time {
        black_box((0..10_000_u64).sum::<u64>());
    }
    Ok(())
}

fn round(breakdown: &Breakdown, other: &Other) -> Result<(), Box<dyn Error + Send + Sync>> {
    REPORTS.store(false, Relaxed);
    dmd::start("--mode=live".parse()?)?;
    let begin = processor_time()?;
    drop(Collector::default().quick().snapshot());
    let unmarked = processor_time()?.saturating_sub(begin);
    dmd::start("--mode=dark-matter".parse()?)?;
    REPORTS.store(true, Relaxed);
    let (taken, clock, [rate, pause]) = other.watched(|| -> io::Result<_> {
        let begin = processor_time()?;
        let census = dmd::take_census(breakdown);
        Ok((census, processor_time()?.saturating_sub(begin)))
    });
    let (census, total) = taken?;
    let census = census.ok_or("DMD sleeps: set $DMD")?;
    let measuring = Duration::from_nanos(MEASURING.load(Relaxed));
    // The same again for a collection that exists already.
    let snapshot = Collector::default().quick().snapshot();
    let begin = processor_time()?;
    let again = dmd::Dump::of(&snapshot).map(|dump| dump.census(breakdown));
    let counting = processor_time()?.saturating_sub(begin);
    drop((again, snapshot));
    // The same work without memory accesses: any remaining difference is the census's.
    let (spun, _, [rate_spinning, pause_spinning]) = other.watched(|| spin(total));
    spun?;
    let seconds = |time: Duration| time.as_secs_f64();
    let line = serde_json::json!({
        "blocks": census.root().amount.count,
        "total": seconds(total),
        "total by the clock": seconds(clock),
        "measuring": seconds(measuring),
        "walk and grouping": seconds(unmarked),
        "sort and merge of marks": seconds(total.saturating_sub(measuring + unmarked + counting)),
        "census": seconds(counting),
        "throughput beside it": rate / rate_spinning,
        "longest pause beside it": pause,
        "longest pause beside a loop": pause_spinning,
    });
    Ok(writeln!(io::stdout(), "{line}")?)
}

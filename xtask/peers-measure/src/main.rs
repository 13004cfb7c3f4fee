//! Measures one structure with all crates in turn.
//!
//! Prints a line of JSON for each crate: the reported bytes, the true bytes, and the time of each
//! round.

mod data;
mod floor;
mod peers;

use std::hint::black_box;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

use memreport::heap_counters;
use peers::Measured;

dmd::global_allocator!();

/// Returns the processor time of this thread, in nanoseconds.
fn cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the result and the time of one measurement, with cold inner caches.
///
/// A program at work has other data in its caches, and so has every collection. A loop that
/// measures the same structure again would find all of it cached. One untimed run comes first, so
/// that all crates find the same outer caches, which hold more than is evicted.
fn timed(mut measure: impl FnMut() -> usize) -> (usize, u64) {
    black_box(measure());
    cool();
    let start = cpu_time();
    let bytes = black_box(measure());
    (bytes, cpu_time() - start)
}

/// Evicts the inner caches.
fn cool() {
    static OTHER: OnceLock<usize> = OnceLock::new();
    const BYTES: usize = 64 << 20;
    let start = *OTHER.get_or_init(|| {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping. It is not on the heap, where it would be measured.
        let pages = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, kind, -1, 0) };
        assert_ne!(pages, libc::MAP_FAILED, "64 MiB can be had");
        pages.expose_provenance()
    });
    let words = std::ptr::with_exposed_provenance_mut::<u64>(start);
    // SAFETY: mapped above for the rest of the process, and used only here: collections take turns.
    let words = unsafe { std::slice::from_raw_parts_mut(words, BYTES / size_of::<u64>()) };
    words.iter_mut().for_each(|word| *word += 1);
    black_box(&*words);
}

/// The name of [`peers::ours`] as a reporter in a collection. With DMD awake, each block is
/// claimed.
const COLLECTING: &str = "ours, collecting";

fn run<T: Measured + memreport::MallocSizeOf + Sync + 'static>(
    make: impl FnOnce() -> T,
    rounds: usize,
    only: &[String],
) -> std::io::Result<()> {
    let is_wanted = |peer: &str| only.is_empty() || only.iter().any(|only| only == peer);
    let heap = || heap_counters().map(|heap| (heap.live_bytes(), heap.allocations - heap.frees));
    let before = heap().unwrap_or_default();
    let value = make();
    let after = heap().unwrap_or_default();
    let (truth, blocks) = (after.0 - before.0, after.1 - before.1);
    let value: &'static T = Box::leak(Box::new(value));
    let mut peers = T::peers();
    peers.retain(|(name, _)| is_wanted(name));
    let mut times = vec![Vec::new(); peers.len()];
    for _ in 0..rounds {
        for ((_, measure), times) in peers.iter().zip(&mut times) {
            times.push(timed(|| measure(black_box(value))).1);
        }
    }
    if is_wanted(COLLECTING) {
        collect(value, rounds, (truth, blocks))?;
    }
    for ((name, measure), times) in peers.iter().zip(times) {
        let line = serde_json::json!({
            "peer": name, "reported": measure(value), "truth": truth, "blocks": blocks, "ns": times,
        });
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}

/// Starts tracking with the options of `START_AT_HALF`, if there are some.
fn start_late() {
    let Ok(options) = std::env::var("START_AT_HALF") else { return };
    let started = options.parse().map_err(|error| format!("{error}")).and_then(|options| {
        dmd::start(options).map_err(|error| error.to_string())
    });
    if let Err(error) = started {
        panic!("START_AT_HALF={options}: {error}");
    }
}

/// Measures the value in collections and prints the time of the reporter in each.
///
/// The time runs from the first claim to the last, without the bookkeeping that follows.
fn collect<T: memreport::MallocSizeOf + Sync>(
    value: &'static T,
    rounds: usize,
    (truth, blocks): (u64, u64),
) -> std::io::Result<()> {
    static LAST: Mutex<(usize, u64)> = Mutex::new((0, 0));
    let _registered = memreport::register(move |reports: &mut memreport::Reports<'_>| {
        black_box(peers::ours(value));
        cool();
        let start = cpu_time();
        let measured = reports.measure("explicit/data", value, "What is measured.");
        let time = cpu_time() - start;
        if let Ok(mut last) = LAST.lock() {
            *last = (measured.bytes, time);
        }
    });
    let mut reported = 0;
    let mut times = Vec::new();
    for _ in 0..rounds {
        black_box(memreport::snapshot());
        if let Ok(last) = LAST.lock() {
            reported = last.0;
            times.push(last.1);
        }
    }
    let line = serde_json::json!({
        "peer": COLLECTING, "reported": reported, "truth": truth, "blocks": blocks, "ns": times,
    });
    writeln!(std::io::stdout(), "{line}")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [structure, rounds, scale, only @ ..] = &args[..] else {
        return Err("usage: peers-measure map|tree|ordered|owners ROUNDS SCALE [PEER]...".into());
    };
    let (rounds, scale): (usize, usize) = (rounds.parse()?, scale.parse()?);
    match structure.as_str() {
        "map" => run(|| data::map(scale, start_late), rounds, only)?,
        "tree" => run(|| data::tree(scale, start_late), rounds, only)?,
        "ordered" => run(|| data::ordered(scale, start_late), rounds, only)?,
        "owners" => run(|| data::owners(scale, start_late), rounds, only)?,
        _ => return Err(format!("no structure is called {structure}").into()),
    }
    Ok(())
}

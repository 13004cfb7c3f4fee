//! Random operations on several threads, compared with a locked map: `hooks SECONDS SEED`.
//!
//! The threads allocate, resize and free blocks of all sizes and alignments, and free each other's.
//! At every pause all of them wait, and each block of the map is in the table, with its size, and
//! no other block has a size of theirs. In between, tracking starts and stops, an observer comes,
//! and the process forks: the child compares too.
#![expect(unsafe_code, reason = "allocates by hand, and forks")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use dmd::Dump;
use dmd::observe::Observer;
use memreport_workload::Numbers;

dmd::global_allocator!();

const THREADS: u64 = 4;

/// The operations of a thread between two pauses.
const OPERATIONS: u64 = 2000;

/// The least size whose blocks are counted, besides being looked up: odd sizes from it on are
/// only used here.
const COUNTED: usize = 40_001;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A live block of the map.
#[derive(Clone, Copy)]
struct Block {
    layout: Layout,
    /// False of blocks from times when nothing was tracked.
    is_tracked: bool,
}

/// The blocks by address, beside the state of tracking, which changes at pauses only.
struct Model {
    blocks: HashMap<usize, Block>,
    /// True from a start to a stop.
    is_on: bool,
    /// True if new blocks are in the table: tracking is on, or there is an observer.
    is_tracking: bool,
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, seed] = &args[..] else { return Err("hooks SECONDS SEED".into()) };
    let (seconds, seed) = (Duration::try_from_secs_f64(seconds.parse()?)?, seed.parse::<u64>()?);
    let model = Mutex::new(Model { blocks: HashMap::new(), is_on: true, is_tracking: true });
    let is_over = Mutex::new(false);
    let barrier = Barrier::new(usize::try_from(THREADS)? + 1);
    let end = Instant::now() + seconds;
    let mut numbers = Numbers::new(seed);
    let pauses = std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (model, is_over, barrier) = (&model, &is_over, &barrier);
            scope.spawn(move || work(seed * THREADS + thread, model, is_over, barrier));
        }
        let mut pauses = 0;
        let mut observer = None;
        loop {
            barrier.wait();
            let result = pause(&model, &mut observer, &mut numbers);
            pauses += 1;
            let ends = result.is_err() || Instant::now() >= end;
            if let Ok(mut is_over) = is_over.lock() {
                *is_over = ends;
            }
            barrier.wait();
            if ends {
                return result.map(|()| pauses);
            }
        }
    })?;
    let operations = pauses * THREADS * OPERATIONS;
    writeln!(std::io::stdout(), "{operations} operations, {pauses} pauses, seed {seed}")?;
    Ok(())
}

/// Runs operations until the end, with a pause after each batch.
fn work(seed: u64, model: &Mutex<Model>, is_over: &Mutex<bool>, barrier: &Barrier) {
    let mut numbers = Numbers::new(seed + 1);
    while !is_over.lock().is_ok_and(|is_over| *is_over) {
        for _ in 0..OPERATIONS {
            operate(model, &mut numbers);
        }
        barrier.wait();
        barrier.wait();
    }
}

/// Allocates, resizes or frees a block. The map is not locked meanwhile.
fn operate(model: &Mutex<Model>, numbers: &mut Numbers) {
    let mut below = |end: usize| usize::try_from(numbers.below(end as u64)).unwrap_or(0);
    let size = match below(8) {
        0..4 => 1 + below(64),
        4..6 => 1 + below(4000),
        6 => COUNTED + 2 * below(3000),
        _ => (1 << 20) + 1 + 2 * below(1 << 19),
    };
    let align = 1 << below(if size < 5000 { 9 } else { 13 });
    let (what, index) = (below(4), below(512));
    let Ok(layout) = Layout::from_size_align(size, align) else { return };
    let Ok(mut locked) = model.lock() else { return };
    let is_tracking = locked.is_tracking;
    let taken = if what >= 2 || locked.blocks.len() > 2000 {
        let address = locked.blocks.keys().nth(index % 16).copied();
        address.and_then(|address| Some((address, locked.blocks.remove(&address)?)))
    } else {
        None
    };
    drop(locked);
    let made = match (taken, what) {
        // SAFETY: no layout here has size 0.
        (None, 0) => unsafe { alloc(layout) },
        // SAFETY: as above.
        (None, _) => unsafe { alloc_zeroed(layout) },
        (Some((address, old)), 3) => {
            let block = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: the block was in the map with this layout, and no other thread has it now.
            unsafe { realloc(block, old.layout, size) }
        }
        (Some((address, old)), _) => {
            let block = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: as above.
            return unsafe { dealloc(block, old.layout) };
        }
    };
    // A block that is resized keeps its alignment.
    let align = taken.map_or(align, |(_, old)| old.layout.align());
    let Ok(layout) = Layout::from_size_align(size, align) else { return };
    if let (Ok(mut locked), false) = (model.lock(), made.is_null()) {
        let block = Block { layout, is_tracked: is_tracking };
        locked.blocks.insert(made.expose_provenance(), block);
    }
}

/// Compares, and then changes what is tracked. No other thread runs.
fn pause(
    model: &Mutex<Model>,
    observer: &mut Option<Observer>,
    numbers: &mut Numbers,
) -> Result<(), Failure> {
    let mut model = model.lock().map_err(|_| "a thread has panicked")?;
    compare(&model, observer.is_some())?;
    match numbers.below(8) {
        0 => in_child(|| compare(&model, observer.is_some()))?,
        1 => {
            dmd::stop();
            model.is_on = false;
        }
        2 => *observer = Some(Observer::start()?),
        3 => *observer = None,
        _ => {
            dmd::start(dmd::Options::default())?;
            model.is_on = true;
        }
    }
    model.is_tracking = model.is_on || observer.is_some();
    Ok(())
}

/// Compares the map with the table.
fn compare(model: &Model, is_observed: bool) -> Result<(), Failure> {
    let mut counts = BTreeMap::<usize, usize>::new();
    for (address, block) in &model.blocks {
        let size = block.layout.size();
        let last = std::ptr::without_provenance::<u8>(address + size - 1);
        let found = dmd::allocation_site_of(last).ok();
        let found = found.map(|found| (found.address(), found.requested()));
        let expected = block.is_tracked.then_some((*address, size));
        if found != expected && (model.is_tracking || is_observed) {
            return Err(format!("{address:x}: {found:x?}, not {expected:x?}").into());
        }
        if block.is_tracked && size >= COUNTED && size % 2 == 1 {
            *counts.entry(size).or_default() += 1;
        }
    }
    let snapshot = memreport::snapshot();
    // Asleep, there are no blocks to count.
    let Some(dump) = Dump::of(&snapshot) else { return Ok(()) };
    let mut table = dump.by_requested_size();
    table.retain(|size, _| *size >= COUNTED && size % 2 == 1);
    let table: BTreeMap<usize, usize> =
        table.into_iter().map(|(size, sum)| (size, sum.blocks)).collect();
    if table != counts {
        return Err(format!("the table has {} sizes, the map {}", table.len(), counts.len()).into());
    }
    Ok(())
}

/// Calls `check` in a forked child.
fn in_child(check: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    // SAFETY: the child only checks and ends. Other threads wait, and hold no lock.
    match unsafe { libc::fork() } {
        0 => {
            let code = i32::from(check().is_err());
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            if status == 0 { Ok(()) } else { Err(format!("the child: status {status}").into()) }
        }
    }
}

//! Six threads make, grow, send and free blocks while dumps are taken: `stress SECONDS [toggle]`.
//!
//! Blocks of odd sizes are made once and kept: every dump has each of them exactly once. At the
//! end, when the threads have ended, the allocator's counters equal the sum of the table.

use std::hint::black_box;
use std::io::Write as _;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use dmd::Dump;
use memreport_workload::Numbers;

#[cfg(planted)]
#[path = "../../../dmd/src/table/planted.rs"]
mod planted;

dmd::global_allocator!();

const THREADS: usize = 6;

/// Returns the requested bytes of the permanent blocks: odd, and from 40,001 on. All others are
/// even or smaller.
fn lasting_sizes() -> impl Iterator<Item = usize> {
    (0..3000).map(|index| 40_001 + 2 * index)
}

/// The error of a run.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    #[cfg(planted)]
    match std::env::args().nth(1).as_deref() {
        Some("two_threads_write_a_word") => planted::two_threads_write_a_word(),
        Some("a_freed_word_is_read") => planted::a_freed_word_is_read(),
        _ => {}
    }
    let seconds: f64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let toggles = args.next().is_some_and(|word| word == "toggle");
    let lasting: Vec<Vec<u8>> = lasting_sizes().map(|size| black_box(vec![1; size])).collect();
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let is_over = AtomicBool::new(false);
    let (mut dumps, mut events) = (0, 0);
    std::thread::scope(|scope| -> Result<(), Failure> {
        let threads: Vec<_> = ring()
            .into_iter()
            .zip(0..)
            .map(|(ends, seed)| {
                let is_over = &is_over;
                scope.spawn(move || churn(seed, ends, is_over))
            })
            .collect();
        if toggles {
            scope.spawn(|| toggle(&is_over));
        }
        let mut result = Ok(());
        while Instant::now() < end && result.is_ok() {
            result = look();
            dumps += 1;
        }
        is_over.store(true, Relaxed);
        for thread in threads {
            events += thread.join().map_err(|_| "a thread has panicked")?;
        }
        result
    })?;
    look()?;
    rest(toggles)?;
    drop(lasting);
    writeln!(std::io::stdout(), "{events} events, {dumps} dumps")?;
    Ok(())
}

/// Takes a dump and looks for the permanent blocks.
fn look() -> Result<(), Failure> {
    let snapshot = memreport::snapshot();
    let sizes = Dump::of(&snapshot).ok_or("DMD sleeps")?.by_requested_size();
    for size in lasting_sizes() {
        let blocks = sizes.get(&size).map_or(0, |sum| sum.blocks);
        if blocks != 1 {
            return Err(format!("a block of {size} bytes is in the dump {blocks} times").into());
        }
    }
    Ok(())
}

/// Compares the counters with the table while no other thread runs.
fn rest(toggles: bool) -> Result<(), Failure> {
    let snapshot = memreport::snapshot();
    let summary = Dump::of(&snapshot).ok_or("DMD sleeps")?.summary();
    let table = summary.unreported.bytes + summary.once.bytes + summary.twice.bytes;
    if toggles && table <= summary.heap_allocated || table == summary.heap_allocated {
        return Ok(());
    }
    Err(format!("the table has {table} bytes, and the counters have {}", summary.heap_allocated)
        .into())
}

type Ends = (SyncSender<Vec<u8>>, Receiver<Vec<u8>>);

/// Returns the ends of a ring, in which each thread sends to the next.
fn ring() -> Vec<Ends> {
    let (senders, mut receivers): (Vec<_>, Vec<_>) =
        (0..THREADS).map(|_| sync_channel::<Vec<u8>>(64)).unzip();
    receivers.rotate_left(1);
    senders.into_iter().zip(receivers).collect()
}

/// Makes blocks, changes their sizes, sends some and frees others.
fn churn(seed: u64, (sender, receiver): Ends, is_over: &AtomicBool) -> u64 {
    let mut numbers = Numbers::new(seed * 2 + 1);
    let mut own: Vec<Vec<u8>> = Vec::new();
    let mut events = 0;
    let mut size = |limit| usize::try_from(numbers.below(limit)).unwrap_or(0);
    while !is_over.load(Relaxed) {
        events += 1;
        match size(8) {
            0..3 => own.push(Vec::with_capacity(size(15) * 2 + 2)),
            3 => own.push(black_box(vec![0; size(4000) * 2 + 2])),
            // Sometimes large enough for a record in another leaf of the table.
            4 if events % 64 == 0 => own.push(Vec::with_capacity((1 << 20) + size(1 << 20) * 2)),
            5 => {
                if let Some(list) = own.last_mut() {
                    list.reserve_exact(size(2000) * 2 + 2);
                    list.shrink_to(size(1000) * 2 + 2);
                }
            }
            6 => {
                let index = size(64);
                if index < own.len() {
                    match sender.try_send(own.swap_remove(index)) {
                        Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                        Err(TrySendError::Full(list)) => own.push(list),
                    }
                }
            }
            _ => own.extend(receiver.try_recv()),
        }
        let keep = 200;
        if own.len() > keep {
            own.truncate(size(200));
        }
    }
    events
}

/// Switches tracking off and on again.
fn toggle(is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        dmd::stop();
        std::thread::sleep(Duration::from_millis(2));
        // The allocator is declared, and profile mode is not set: it cannot fail.
        dmd::start(dmd::Options::default()).expect("tracking can start");
        std::thread::sleep(Duration::from_millis(2));
    }
}

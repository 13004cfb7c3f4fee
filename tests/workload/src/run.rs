//! The command line of every program that does the work: a kind of work, then its amount.
//!
//! * `churn OPERATIONS THREADS [LIVE [PATHS]]`: replaces live blocks at random, 200,000 by default,
//!   on all threads together, at the end of 512 paths in each thread. Prints two times.
//! * `idle INSTRUCTIONS OPERATIONS THREADS [LIVE [PATHS]]`: does the same, and for each replaced
//!   block some 900 or 1250 further instructions, which only compute. Prints two times.
//! * `json FILE`: parses the file and drops it. Prints two times.
//! * `maps ROUNDS`: uses JSON, maps and shared nodes. Prints two times.
//! * `live BLOCKS`: makes that many blocks of 64 bytes. Prints the bytes of memory for each.
//! * `beside blocks WORK` and `beside THREADS WORK`: does one of these while blocks of unusual
//!   sizes, or that many other threads, live.
//!
//! The times are in nanoseconds, without preparation: the processor time of the working thread, and
//! the wall time. Each thread stays on one processor.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::beside::Beside;
use crate::churn::{Heap, PATHS};
use crate::{json, live, maps, processor};

const LIVE: usize = 200_000;

const USAGE: &str = "churn OPERATIONS THREADS, idle 900 OPERATIONS THREADS, json FILE, maps ROUNDS, \
                     live BLOCKS, or one of these behind beside blocks, or beside THREADS";

/// Runs the command line.
///
/// # Errors
///
/// If the words are unknown, a file cannot be read, or a system call fails.
pub fn run() -> Result<(), Box<dyn Error + Send + Sync>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (beside, work) = match *words {
        ["beside", what, ref work @ ..] => (Some(what), work),
        ref work => (None, work),
    };
    let _beside = beside.map(Beside::new).transpose()?;
    let answer = match *work {
        ["churn", ref amount @ ..] => in_words(churn::<0>(amount)?),
        // 14 instructions in a step, and 37 around all of them.
        ["idle", "900", ref amount @ ..] => in_words(churn::<62>(amount)?),
        ["idle", "1250", ref amount @ ..] => in_words(churn::<86>(amount)?),
        ["json", file] => in_words(parse(&std::fs::read_to_string(file)?)?),
        ["maps", rounds] => in_words(fill_maps(rounds.parse()?)?),
        ["live", blocks] => format!("{:.2}", live::bytes_per_block(blocks.parse()?)?),
        _ => return Err(USAGE.into()),
    };
    Ok(writeln!(io::stdout(), "{answer}")?)
}

/// Processor time and wall time.
type Times = (Duration, Duration);

fn in_words((processor, wall): Times) -> String {
    format!("{} {}", processor.as_nanos(), wall.as_nanos())
}

fn timed<T>(work: impl FnOnce() -> T) -> io::Result<(T, Times)> {
    let (wall, processor) = (Instant::now(), processor::time()?);
    let result = black_box(work());
    let processor = processor::time()?.saturating_sub(processor);
    Ok((result, (processor, wall.elapsed())))
}

/// Replaces blocks: OPERATIONS THREADS [LIVE [PATHS]].
fn churn<const IDLE: u32>(amount: &[&str]) -> Result<Times, Box<dyn Error + Send + Sync>> {
    let [operations, threads, ref sizes @ ..] = *amount else { return Err(USAGE.into()) };
    let (live, paths) = match *sizes {
        [] => (LIVE, PATHS),
        [live] => (live.parse()?, PATHS),
        [live, paths] => (live.parse()?, paths.parse()?),
        _ => return Err(USAGE.into()),
    };
    let (operations, threads) = (operations.parse()?, threads.parse()?);
    Ok(match threads {
        0 => return Err(USAGE.into()),
        1 => churn_alone::<IDLE>(operations, (live, paths))?,
        _ => churn_at_once::<IDLE>(operations, threads, (live, paths))?,
    })
}

fn churn_alone<const IDLE: u32>(
    operations: u64,
    (live, paths): (usize, usize),
) -> io::Result<Times> {
    processor::pin(0)?;
    let mut heap = Heap::<IDLE>::new(live, paths, 1);
    Ok(timed(|| heap.churn(operations))?.1)
}

/// Runs all threads together. It takes the time of the last to finish. Two have a processor each;
/// more share all processors evenly.
fn churn_at_once<const IDLE: u32>(
    operations: u64,
    threads: usize,
    (live, paths): (usize, usize),
) -> io::Result<Times> {
    let ready = Barrier::new(threads);
    let processors = if threads > 2 { processor::count()? } else { threads };
    let work = |number: usize| -> io::Result<Times> {
        processor::pin(number % processors)?;
        let mut heap = Heap::<IDLE>::new(live / threads, paths, 1 + number as u64);
        ready.wait();
        Ok(timed(|| heap.churn(operations / threads as u64))?.1)
    };
    // A thread that cannot be pinned would leave the others waiting.
    thread::scope(|scope| {
        scope.spawn(|| processor::pin(threads.min(processors).saturating_sub(1))).join()
    })
    .map_err(|_| io::Error::other("a thread panicked"))??;
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        let times = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        });
        times.reduce(longer).unwrap_or_else(|| Err(io::Error::other("no thread")))
    })
}

fn longer(one: io::Result<Times>, other: io::Result<Times>) -> io::Result<Times> {
    let (one, other) = (one?, other?);
    Ok((one.0 + other.0, one.1.max(other.1)))
}

fn parse(text: &str) -> Result<Times, Box<dyn Error + Send + Sync>> {
    processor::pin(0)?;
    let (objects, times) = timed(|| json::parse(text))?;
    black_box(objects?);
    Ok(times)
}

fn fill_maps(rounds: u32) -> Result<Times, Box<dyn Error + Send + Sync>> {
    processor::pin(0)?;
    let mut text = Vec::new();
    json::write_text(300_000, &mut text)?;
    let text = String::from_utf8(text)?;
    black_box(maps::round(&text));
    let work = || (0..rounds).fold(0, |sum, _| sum ^ black_box(maps::round(black_box(&text))));
    Ok(timed(work)?.1)
}

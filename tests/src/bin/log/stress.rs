//! Four threads allocate while two observers read their logs, one of them slowly. Every lost entry
//! is counted, and no entry comes twice.
//!
//! A block's size encodes the thread that made it, and its number there.

use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use dmd::observe::{Allocation, MAX_LOG_LENGTH, Observer};

type Failure = Box<dyn std::error::Error>;

const WRITERS: usize = 4;

/// The number of blocks of a thread before its sizes repeat.
const TURNS: usize = 1 << 14;

/// The smallest size: no other code requests as much.
const LEAST: usize = 1000;

/// Makes and frees the block of this number.
fn allocate(writer: usize, number: usize) {
    let size = LEAST + number % TURNS * WRITERS + writer;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(size)));
}

/// Decodes the thread and the number from a size.
fn meant(entry: &Allocation) -> Result<(usize, usize), Failure> {
    let code = entry.requested().checked_sub(LEAST).filter(|code| *code < TURNS * WRITERS);
    let code = code.ok_or_else(|| format!("{entry:?} is no writer's"))?;
    Ok((code % WRITERS, code / WRITERS))
}

/// The entries that an observer has read.
struct Reader {
    observer: Observer,
    /// The next number of each thread.
    next: [Option<usize>; WRITERS],
    entries: Vec<Allocation>,
    read: u64,
    lost: u64,
    overflows: u64,
    /// Lost entries without a gap yet: a gap shows at the next entry of its thread.
    unexplained: u64,
}

impl Reader {
    fn new(length: usize) -> Result<Self, Failure> {
        let mut observer = Observer::start()?;
        observer.set_max_log_length(length)?;
        let (next, entries) = ([Some(0); WRITERS], Vec::new());
        Ok(Reader { observer, next, entries, read: 0, lost: 0, overflows: 0, unexplained: 0 })
    }

    fn drain(&mut self) -> Result<(), Failure> {
        let has_overflowed = self.observer.log_overflowed();
        let log = self.observer.drain_allocations_log()?;
        let found = (log.entries.len(), log.lost, log.overflowed);
        if log.overflowed != (log.lost > 0) || has_overflowed && !log.overflowed {
            return Err(
                format!("`log_overflowed` returned {has_overflowed} before {found:?}").into()
            );
        }
        if log.entries.len() > self.observer.max_log_length() {
            return Err(format!("a log of {} entries", log.entries.len()).into());
        }
        self.entries = log.entries;
        self.read += self.entries.len() as u64;
        self.lost += log.lost;
        self.unexplained += log.lost;
        self.overflows += u64::from(log.overflowed);
        for index in 0..self.entries.len() {
            let (writer, number) = meant(&self.entries[index])?;
            self.expect(writer, number)?;
        }
        Ok(())
    }

    /// Checks that a missing entry was counted as lost, and that none is repeated.
    fn expect(&mut self, writer: usize, number: usize) -> Result<(), Failure> {
        let gap = match self.next[writer] {
            Some(expected) => (number + TURNS - expected) % TURNS,
            None => 0,
        };
        self.next[writer] = Some((number + 1) % TURNS);
        // A gap of whole turns cannot be seen.
        let gap = gap as u64;
        if gap > self.unexplained {
            return Err(
                format!("thread {writer}: {gap} missing, {} counted", self.unexplained).into()
            );
        }
        self.unexplained -= gap;
        Ok(())
    }

    /// Checks that every written entry was read or counted as lost.
    fn check(&self, written: u64) -> Result<(), Failure> {
        if self.read + self.lost == written {
            return Ok(());
        }
        Err(format!("{} read and {} lost of {written}", self.read, self.lost).into())
    }
}

/// Writes bursts of known size between two reads: exactly the excess is lost.
fn bursts() -> Result<(), Failure> {
    const LENGTH: usize = 5000;
    let mut reader = Reader::new(LENGTH)?;
    let (begin, end) = (Barrier::new(WRITERS + 1), Barrier::new(WRITERS + 1));
    let bursts = [100, 1250, 1251, 2000, 1, 20_000, 1250];
    let _ = reader.observer.drain_allocations_log()?;
    std::thread::scope(|scope| -> Result<(), Failure> {
        let (begin, end) = (&begin, &end);
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut number = 0;
                for burst in bursts {
                    begin.wait();
                    for _ in 0..burst {
                        allocate(writer, number);
                        number += 1;
                    }
                    end.wait();
                }
            });
        }
        let mut result = Ok(());
        // Discards allocations of the starting threads.
        let _ = reader.observer.drain_allocations_log()?;
        for burst in bursts {
            begin.wait();
            end.wait();
            let (before, lost) = (reader.read, reader.lost);
            result = result.and_then(|()| reader.drain());
            let all = (burst * WRITERS) as u64;
            let kept = all.min(LENGTH as u64);
            let found = (reader.read - before, reader.lost - lost);
            if result.is_ok() && found != (kept, all - kept) {
                result = Err(format!("{found:?} of {all}").into());
            }
        }
        result
    })
}

/// Runs for this many seconds, and prints the totals.
pub(crate) fn run(seconds: f64) -> Result<(), Failure> {
    bursts()?;
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let ready = Barrier::new(WRITERS + 1);
    let (begin, mut slow, mut quick) =
        (Instant::now(), Reader::new(5000)?, Reader::new(MAX_LOG_LENGTH)?);
    std::thread::scope(|scope| -> Result<(), Failure> {
        let ready = &ready;
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    ready.wait();
                    ready.wait();
                    let mut number = 0;
                    while !IS_OVER.load(Relaxed) {
                        allocate(writer, number);
                        number += 1;
                    }
                    WRITTEN.fetch_add(number as u64, Relaxed);
                })
            })
            .collect();
        ready.wait();
        // Discards allocations of the starting threads.
        let _ = slow.observer.drain_allocations_log()?;
        let _ = quick.observer.drain_allocations_log()?;
        ready.wait();
        let mut result = Ok(());
        let mut next_slow = begin;
        while begin.elapsed().as_secs_f64() < seconds && result.is_ok() {
            result = quick.drain();
            if result.is_ok() && Instant::now() >= next_slow {
                next_slow = Instant::now() + Duration::from_millis(20);
                result = slow.drain();
            }
        }
        IS_OVER.store(true, Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a writer panicked")?;
        }
        result?;
        quick.drain()?;
        slow.drain()
    })?;
    let written = WRITTEN.load(Relaxed);
    quick.check(written)?;
    slow.check(written)?;
    let line = format!(
        "{written} allocations by {WRITERS} threads; the quick reader took {} and lost {} in {} overflows, the slow one took {} and \
         lost {} in {}\n",
        quick.read, quick.lost, quick.overflows, slow.read, slow.lost, slow.overflows
    );
    Ok(std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes())?)
}

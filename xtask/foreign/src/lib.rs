//! The truth that figures are compared with: a counting allocator below DMD, and what glibc says.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Write as _};
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use memreport::{HeapStatistics, UsableSize};

/// A value with its lowest and highest since an observer set them. The observer is another process
/// that reads and writes this memory.
#[repr(C)]
pub struct Ranged {
    now: AtomicI64,
    lowest: AtomicI64,
    highest: AtomicI64,
}

impl Ranged {
    const fn new() -> Self {
        Ranged { now: AtomicI64::new(0), lowest: AtomicI64::new(0), highest: AtomicI64::new(0) }
    }

    fn add(&self, change: i64) {
        self.note(self.now.fetch_add(change, Relaxed) + change);
    }

    fn set(&self, value: i64) {
        self.now.store(value, Relaxed);
        self.note(value);
    }

    fn note(&self, value: i64) {
        self.lowest.fetch_min(value, Relaxed);
        self.highest.fetch_max(value, Relaxed);
    }
}

/// The counters, in the order in which `cargo xtask foreign` reads them.
#[repr(C)]
pub struct Counters {
    /// Bytes in live blocks, as `malloc_usable_size` has them.
    usable: Ranged,
    /// The number of live blocks.
    blocks: Ranged,
    /// Bytes in use by glibc's account: chunks with their headers, and mapped ones.
    in_use: Ranged,
    /// Usable bytes of all blocks since the start.
    allocated: Ranged,
}

static COUNTERS: Counters = Counters {
    usable: Ranged::new(),
    blocks: Ranged::new(),
    in_use: Ranged::new(),
    allocated: Ranged::new(),
};

/// The system's allocator, counted.
#[derive(Debug, Clone, Copy)]
pub struct Counted;

fn usable(block: *mut u8) -> i64 {
    // SAFETY: callers pass live blocks of the system's allocator.
    let size = unsafe { libc::malloc_usable_size(block.cast()) };
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Calls to the allocator after which a thread has its name.
const NAMED: u8 = 64;

thread_local! {
    static CALLS: Cell<u8> = const { Cell::new(0) };
    static IS_TRACKERS: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the current thread is the tracker's: its blocks are in no figure.
fn is_trackers() -> bool {
    let calls = CALLS.get();
    if calls < NAMED {
        CALLS.set(calls + 1);
        let mut name = [0_u8; 16];
        // SAFETY: a name has at most 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        IS_TRACKERS.set(name.starts_with(b"dmd-"));
    }
    IS_TRACKERS.get()
}

fn born(block: *mut u8) -> *mut u8 {
    if !block.is_null() && !is_trackers() {
        COUNTERS.usable.add(usable(block));
        COUNTERS.allocated.add(usable(block));
        COUNTERS.blocks.add(1);
    }
    block
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        born(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        born(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !is_trackers() {
            COUNTERS.usable.add(-usable(block));
            COUNTERS.blocks.add(-1);
        }
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let old = usable(block);
        // SAFETY: the caller's contract is the same.
        let moved = unsafe { System.realloc(block, layout, size) };
        if !moved.is_null() && !is_trackers() {
            COUNTERS.usable.add(usable(moved) - old);
            COUNTERS.allocated.add(usable(moved));
        }
        moved
    }
}

// SAFETY: the system's sizes of the system's blocks.
unsafe impl UsableSize for Counted {
    const SPACING: usize = <System as UsableSize>::SPACING;
    const ALIGN: usize = <System as UsableSize>::ALIGN;

    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller's contract is the same.
        unsafe { System.usable_size(block, layout) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        System.statistics()
    }
}

/// The words of [`text`], each with a number behind it.
pub const WORDS: [&str; 12] = [
    "heap", "arena", "block", "stack", "page", "table", "lock", "thread", "frame", "graph",
    "string", "number",
];

/// Returns a text of 60 words, another one for each number.
#[must_use]
pub fn text(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    for _ in 0..60 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let high = usize::try_from(state >> 40).unwrap_or(0);
        text.push_str(WORDS[high % WORDS.len()]);
        text.push_str(&format!("{} ", high % 900));
    }
    text
}

/// Prints the address of the counters, serves reports, and watches glibc's account.
///
/// # Errors
/// The socket cannot be made, or standard output is closed.
pub fn begin() -> io::Result<()> {
    memreport::serve()?;
    thread::Builder::new().name("account".into()).spawn(|| {
        loop {
            // SAFETY: the function has no contract.
            let account = unsafe { libc::mallinfo2() };
            let bytes = account.uordblks + account.hblkhd;
            COUNTERS.in_use.set(i64::try_from(bytes).unwrap_or(i64::MAX));
            thread::sleep(Duration::from_millis(5));
        }
    })?;
    writeln!(io::stdout(), "counters {}", std::ptr::from_ref(&COUNTERS).addr())?;
    io::stdout().flush()
}

extern "C" fn print_counters() {
    let Counters { usable, allocated, blocks, .. } = &COUNTERS;
    let values = [&usable.now, &usable.highest, &allocated.now, &blocks.now];
    let [usable, highest, allocated, blocks] = values.map(|value| value.load(Relaxed));
    // A closed output is found by the reader.
    let _ = writeln!(io::stdout(), "end {usable} {highest} {allocated} {blocks}");
}

/// Prints the number and the bytes of live blocks, and saves a report to the file that the first
/// argument names, if there is one. Then prints the result of the program's work, by which two
/// versions are compared, serves reports, and waits for the end of standard input: its memory can
/// be looked at meanwhile.
///
/// # Errors
/// The socket cannot be made, standard output is closed, standard input cannot be read, or the file
/// cannot be written.
pub fn finish(result: impl FnOnce() -> u64) -> io::Result<()> {
    let (bytes, blocks) = (COUNTERS.usable.now.load(Relaxed), COUNTERS.blocks.now.load(Relaxed));
    writeln!(io::stdout(), "live {bytes} {blocks}")?;
    memreport::serve()?;
    if let Some(report) = std::env::args_os().nth(1) {
        memreport::snapshot().save(report)?;
    }
    writeln!(io::stdout(), "result {:x}", result())?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

/// Works in rounds: as many as the first argument says, and prints the counters at the exit.
/// Without it, until standard input ends. A line on it pauses the work, the next one resumes it.
///
/// # Errors
/// Standard output is closed.
pub fn work(mut round: impl FnMut(u64)) -> io::Result<()> {
    begin()?;
    if let Some(rounds) = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()) {
        (0..rounds).for_each(round);
        // SAFETY: the function needs only the process. It runs just before the tracker takes its
        // last report, and after thread-local values are dropped.
        unsafe { libc::atexit(print_counters) };
        std::process::exit(0);
    }
    let (lines, requests) = std::sync::mpsc::sync_channel(8);
    thread::spawn(move || {
        for line in io::stdin().lines() {
            if line.is_err() || lines.send(()).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    for number in 0.. {
        round(number);
        if number == 0 {
            writeln!(io::stdout(), "busy")?;
            io::stdout().flush()?;
        }
        if requests.try_recv().is_ok() {
            writeln!(io::stdout(), "paused")?;
            io::stdout().flush()?;
            let _ = requests.recv();
        }
    }
    Ok(())
}

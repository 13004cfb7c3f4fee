//! A program that parses JSON on several threads, and counts its blocks in an allocator of its own.
//!
//! `parsed COUNTS [signals|fork|own FILE|lossy FILE]` writes the number of blocks that it has
//! allocated and freed in the scope `counted` to the file COUNTS.
#![expect(unsafe_code, reason = "an allocator, a signal handler, and forks")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::error::Error;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::io::Write;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use dmd::record::{Recorder, Recording};
use memreport::UsableSize;

dmd::global_allocator!(Counted(System): Counted<System>);

/// The number of threads, and of documents that each parses.
const THREADS: usize = 3;
const DOCUMENTS: usize = 1400;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// True while this thread's blocks are counted.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
    /// True while this thread is in the inner allocator, which signal handlers must not enter.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// An allocator that counts blocks.
struct Counted<A>(A);

fn inside<R>(call: impl FnOnce() -> R) -> R {
    let before = IS_INSIDE.replace(true);
    let result = call();
    IS_INSIDE.set(before);
    result
}

fn count(counter: &AtomicU64) {
    if COUNTS.get() {
        counter.fetch_add(1, Relaxed);
    }
}

// SAFETY: every call goes to the inner allocator.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(&ALLOCATED);
        // SAFETY: the caller's contract.
        inside(|| unsafe { self.0.alloc(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(&FREED);
        // SAFETY: the caller's contract.
        inside(|| unsafe { self.0.dealloc(block, layout) });
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(&FREED);
        count(&ALLOCATED);
        // SAFETY: the caller's contract.
        inside(|| unsafe { self.0.realloc(block, layout, size) })
    }
}

// SAFETY: the answers are the inner allocator's.
unsafe impl<A: UsableSize> UsableSize for Counted<A> {
    const SPACING: usize = A::SPACING;
    const ALIGN: usize = A::ALIGN;

    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller's contract.
        unsafe { self.0.usable_size(block, layout) }
    }
}

/// Counts the blocks of `work`, in the scope that its blocks have in a recording.
fn counted<R>(work: impl FnOnce() -> R) -> R {
    let _scope = memreport::enter_scope("counted");
    COUNTS.set(true);
    let result = work();
    COUNTS.set(false);
    result
}

/// Parses documents, and drops all but the last.
fn parses(documents: usize) -> Option<serde_json::Value> {
    let text = r#"{"name":"a name of some length","list":[[1],[2],[3],["four"]],"more":{"a":"b","c":"d"}}"#;
    let mut last = None;
    for _ in 0..documents {
        last = serde_json::from_str(text).ok();
    }
    last
}

/// Parses while it holds the linker's lock, as code that prints a backtrace does.
fn parses_under_the_linker() {
    unsafe extern "C" fn visit(_: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
        drop(black_box(parses(DOCUMENTS)));
        1
    }
    // SAFETY: `visit` does not use its arguments.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::null_mut()) };
}

extern "C" fn on_signal(_: c_int) {
    if !IS_INSIDE.get() {
        (0..100_u64).for_each(|number| drop(black_box(Box::new(number))));
    }
}

/// Interrupts the threads of this process after every 300 microseconds of processor time.
fn interrupt_often() {
    let step = libc::timeval { tv_sec: 0, tv_usec: 300 };
    let timer = libc::itimerval { it_interval: step, it_value: step };
    // SAFETY: the handler allocates only outside the inner allocator.
    unsafe { libc::signal(libc::SIGPROF, on_signal as extern "C" fn(c_int) as usize) };
    // SAFETY: a readable timer; the old one is not returned.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()) };
}

/// Forks a child that allocates more than any buffer of events holds. Returns whether it ends.
fn forks() -> bool {
    // SAFETY: the child allocates and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it ends a child that hangs.
        unsafe { libc::alarm(60) };
        (0..100_000_u64).for_each(|number| drop(black_box(Box::new(number))));
        // SAFETY: the child has nothing to do at its exit.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a writable status.
    unsafe { libc::waitpid(child, &raw mut status, 0) == child && status == 0 }
}

/// Starts a recording of every block whose thread wakes by itself at its end alone.
fn records(file: &str, is_lossy: bool) -> Result<Recording, Box<dyn Error>> {
    let recorder = Recorder::default().options("--mode=live --stacks=none".parse()?);
    Ok(recorder.every(Duration::from_secs(600)).lossy(is_lossy).start(file)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [counts, rest @ ..] = &words[..] else { return Err("no name of a file".into()) };
    let recording = match rest {
        ["own", file] => Some(records(file, false)?),
        ["lossy", file] => Some(records(file, true)?),
        _ => None,
    };
    if rest == ["signals"] {
        interrupt_often();
    }
    let kept = counted(|| parses(1));
    let has_forked = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| counted(|| drop(black_box(parses(DOCUMENTS)))));
        }
        memreport::mark("others parse");
        rest != ["fork"] || forks()
    });
    counted(parses_under_the_linker);
    if let Some(recording) = recording {
        let recorded = recording.finish()?;
        writeln!(std::io::stdout(), "{} events, {} lost", recorded.events, recorded.lost)?;
    }
    drop(black_box(kept));
    std::fs::write(counts, format!("{} {}", ALLOCATED.load(Relaxed), FREED.load(Relaxed)))?;
    if has_forked { Ok(()) } else { Err("the child failed".into()) }
}

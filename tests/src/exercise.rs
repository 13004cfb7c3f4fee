//! Exercises every operation of an allocator. After each step the table, the counters, and the
//! program's own sums must agree.
#![expect(unsafe_code, reason = "calls the allocator as containers do")]

use std::alloc::{GlobalAlloc, Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::ffi::CStr;
use std::io::{self, Write};
use std::process::ExitCode;
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use dmd::Dump;
use memreport::{HeapStatistics, MallocSizeOf, Ops, UsableSize, heap_counters, measure};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The environment variable with which the sizes of an allocator's blocks are not prepared, as if
/// its answers differed from what is computed.
const UNPREPARED: &CStr = c"UNPREPARED";

/// An allocator that fails while `FAILS` is set.
#[derive(Debug)]
pub struct Failing<A>(pub A);

static FAILS: AtomicBool = AtomicBool::new(false);

// SAFETY: forwards unchanged, or returns null, which any allocator may.
unsafe impl<A: UsableSize> GlobalAlloc for Failing<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: forwarded.
        if FAILS.load(Relaxed) { ptr::null_mut() } else { unsafe { self.0.counted_alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if FAILS.load(Relaxed) {
            return ptr::null_mut();
        }
        // SAFETY: forwarded.
        unsafe { self.0.counted_alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: forwarded.
        unsafe { self.0.counted_dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if FAILS.load(Relaxed) {
            return ptr::null_mut();
        }
        // SAFETY: forwarded.
        unsafe { self.0.counted_realloc(block, layout, new_size) }
    }
}

// SAFETY: the inner allocator's sizes of its own blocks.
unsafe impl<A: UsableSize> UsableSize for Failing<A> {
    const SPACING: usize = A::SPACING;
    const ALIGN: usize = A::ALIGN;
    const LEAST_IS_16: bool = A::LEAST_IS_16;

    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: forwarded.
        unsafe { self.0.usable_size(block, layout) }
    }

    fn prepare_sizes(&self) -> bool {
        // SAFETY: no thread changes the environment. The C library's function does not allocate.
        let is_unprepared = unsafe { !libc::getenv(UNPREPARED.as_ptr()).is_null() };
        !is_unprepared && self.0.prepare_sizes()
    }

    unsafe fn prepared_size(&self, block: *const u8, layout: Layout) -> Option<usize> {
        // SAFETY: forwarded.
        unsafe { self.0.prepared_size(block, layout) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        self.0.statistics()
    }
}

/// Runs all steps. The exit code and standard error report a failure.
#[must_use]
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed too, only the exit code remains.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut heap = Heap::new()?;
    heap.aligned()?;
    heap.without_size()?;
    heap.resized()?;
    heap.failing()?;
    heap.zeroed()?;
    heap.huge()?;
    heap.freed_by_others()
}

/// A block owned by hand, as a container owns it. All its bytes have the same value.
struct Block {
    start: *mut u8,
    layout: Layout,
    fill: u8,
}

// SAFETY: it owns its block, as a vector does.
unsafe impl Send for Block {}

impl MallocSizeOf for Block {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: its own live block, with the current layout.
        unsafe { ops.block(self.start.cast_const(), self.layout) };
    }
}

impl Block {
    fn new(size: usize, align: usize, is_zeroed: bool) -> Result<Self, Failure> {
        let layout = Layout::from_size_align(size, align)?;
        let ask = if is_zeroed { alloc_zeroed } else { alloc };
        // SAFETY: the size is not zero.
        let start = unsafe { ask(layout) };
        if start.is_null() {
            return Err(format!("no memory for {layout:?}").into());
        }
        if !start.addr().is_multiple_of(align) {
            return Err(format!("{start:p} is not aligned for {layout:?}").into());
        }
        Ok(Block { start, layout, fill: 0 })
    }

    /// Returns the usable bytes, as the program measures them.
    fn usable(&self) -> usize {
        measure(self).bytes
    }

    /// Writes all usable bytes: overlapping or too small blocks would overwrite each other.
    fn fill(&mut self, fill: u8) {
        self.fill = fill;
        // SAFETY: this many bytes are usable.
        unsafe { self.start.write_bytes(fill, self.usable()) };
    }

    /// Returns whether the first bytes are unchanged.
    fn holds(&self, bytes: usize) -> bool {
        // SAFETY: a live block of at least this many bytes, all of them written.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, bytes) };
        // Equal to themselves a byte further on: all the same.
        bytes
            .split_first()
            .is_none_or(|(first, rest)| *first == self.fill && *rest == bytes[..rest.len()])
    }

    /// Resizes the block. Returns whether the allocator succeeded.
    fn resize(&mut self, size: usize) -> bool {
        // SAFETY: live, with this layout; the size is not zero, and far below the limit of a
        // layout.
        let moved = unsafe { realloc(self.start, self.layout, size) };
        if moved.is_null() {
            return false;
        }
        self.start = moved;
        // SAFETY: the alignment was valid before, and the size is far from overflowing.
        self.layout = unsafe { Layout::from_size_align_unchecked(size, self.layout.align()) };
        true
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: live, with this layout, and never used again.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// A number of blocks and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    blocks: usize,
    bytes: usize,
}

/// The program's own sums, without the blocks from before the start.
struct Heap {
    blocks: Vec<Block>,
    before: Sum,
}

impl Heap {
    fn new() -> Result<Self, Failure> {
        let blocks = Vec::with_capacity(10_000);
        // One-time allocations, such as a thread's name, happen now.
        spawned(Vec::new())?;
        balance("at the beginning")?;
        Ok(Heap { blocks, before: balance("at the beginning")? })
    }

    /// Compares the tracker's sums with the program's own.
    fn check(&self, step: &str) -> Result<(), Failure> {
        let own = Sum {
            blocks: self.before.blocks + self.blocks.len(),
            bytes: self.before.bytes + self.blocks.iter().map(Block::usable).sum::<usize>(),
        };
        let balance = balance(step)?;
        if balance != own {
            return Err(
                format!("{step}: {own:?} is held, and the allocator counts {balance:?}").into()
            );
        }
        Ok(())
    }

    fn make(&mut self, size: usize, align: usize) -> Result<&mut Block, Failure> {
        let mut block = Block::new(size, align, false)?;
        let usable = block.usable();
        // Small requests are rounded up, both asleep and awake, if blocks could be closer than the
        // table's words.
        if usable < size.max(16) {
            return Err(format!("{usable} bytes of {size} may be used").into());
        }
        block.fill(u8::try_from(self.blocks.len() % 255).unwrap_or(0) + 1);
        self.blocks.push(block);
        self.blocks.last_mut().ok_or_else(|| "it was pushed".into())
    }

    /// Frees every second block first, to check that its neighbours are intact.
    fn clear(&mut self, step: &str) -> Result<(), Failure> {
        let spoilt = self.blocks.iter().filter(|block| !block.holds(block.usable())).count();
        if spoilt > 0 {
            return Err(format!("{step}: {spoilt} blocks were written over").into());
        }
        let mut number = 0;
        self.blocks.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        self.check(step)?;
        self.blocks.clear();
        self.check(step)
    }

    fn aligned(&mut self) -> Result<(), Failure> {
        for align in (0..13).map(|bits| 1 << bits) {
            for size in (1..40).chain([63, 64, 100, 255, 1000, 4096, 5000, 40_000]) {
                self.make(size, align)?;
            }
            self.check("aligned blocks")?;
        }
        self.clear("aligned blocks")
    }

    /// Zero-sized values never reach the allocator.
    fn without_size(&mut self) -> Result<(), Failure> {
        let nothing = (Box::new(()), vec![(); 1000], Vec::<u64>::new(), String::new());
        self.check("values without size")?;
        drop(std::hint::black_box(nothing));
        self.check("values without size")
    }

    fn resized(&mut self) -> Result<(), Failure> {
        const SIZES: [usize; 14] =
            [1, 2, 8, 15, 16, 17, 31, 33, 100, 101, 5000, 3_000_000, 6_000_000, 7];
        for align in [1, 8, 16, 64, 4096] {
            self.make(SIZES[13], align)?;
            // An obstacle to growing in place.
            self.make(24, 8)?;
            let grown = self.blocks.len() - 2;
            for size in SIZES {
                let Some(block) = self.blocks.get_mut(grown) else { continue };
                let kept = size.min(block.layout.size());
                if !block.resize(size) || !block.holds(kept) {
                    return Err(format!("resized to {size}, aligned to {align}").into());
                }
                let fill = block.fill;
                block.fill(fill);
                // A check takes a tenth of a second in this build.
                if align == 16 {
                    self.check("resized blocks")?;
                }
            }
            self.check("resized blocks")?;
        }
        self.clear("resized blocks")
    }

    /// Checks that a failed request changes nothing.
    fn failing(&mut self) -> Result<(), Failure> {
        let mut list = vec![7_u8; 100];
        let before = balance("before failing")?;
        for fails in [true, false] {
            FAILS.store(fails, Relaxed);
            let grown = list.try_reserve(if fails { 1000 } else { isize::MAX as usize / 2 });
            let made = Vec::<u8>::new().try_reserve(if fails { 10 } else { isize::MAX as usize });
            FAILS.store(false, Relaxed);
            if grown.is_ok() || made.is_ok() {
                return Err("what cannot be had was had".into());
            }
            if balance("after failing")? != before || measure(&list).blocks != 1 {
                return Err("a request that failed has left its mark".into());
            }
        }
        list.reserve(1000);
        if list != [7; 100] {
            return Err("a list that could not grow was spoilt".into());
        }
        drop(list);
        self.check("failing requests")
    }

    /// Zeroed blocks reuse memory.
    fn zeroed(&mut self) -> Result<(), Failure> {
        for size in [1, 7, 16, 24, 100, 1000, 5000, 100_000, 2_000_000] {
            for align in [1, 16, 4096] {
                drop({
                    let mut dirty = Block::new(size, align, false)?;
                    dirty.fill(255);
                    dirty
                });
                let mut block = Block::new(size, align, true)?;
                if !block.holds(size) {
                    return Err(format!("{size} bytes aligned to {align} are not zero").into());
                }
                block.fill(1);
                self.blocks.push(block);
            }
        }
        self.check("zeroed blocks")?;
        self.clear("zeroed blocks")
    }

    /// Makes huge blocks; the largest is not touched.
    fn huge(&mut self) -> Result<(), Failure> {
        for (size, align) in [(1 << 20, 1), ((1 << 20) + 1, 1 << 21), (64 << 20, 16)] {
            self.make(size, align)?;
            self.check("huge blocks")?;
        }
        self.clear("huge blocks")?;
        // More than 32 bits hold; a scan reads all of it, for seconds in this build.
        let is_scanned = std::env::var("DMD").is_ok_and(|words| words.contains("scan"));
        self.blocks.push(Block::new(if is_scanned { 300 << 20 } else { 5 << 30 }, 16, false)?);
        self.check("a block of gigabytes")?;
        self.blocks.clear();
        self.check("a block of gigabytes")
    }

    fn freed_by_others(&mut self) -> Result<(), Failure> {
        for size in (1..2000).step_by(3) {
            self.make(size, 8)?;
        }
        let others = self.blocks.split_off(self.blocks.len() / 2);
        // Its own buffer is not one of the counted blocks.
        spawned(others)?;
        self.check("blocks freed by another thread")?;
        self.clear("blocks freed by another thread")
    }
}

/// Drops the blocks on another thread, and waits for its end.
fn spawned(blocks: Vec<Block>) -> Result<(), Failure> {
    let thread = thread::spawn(move || drop(blocks));
    thread.join().map_err(|_| "the thread panicked".into())
}

/// Returns the counters' sum, and compares it with the table while DMD is awake.
fn balance(step: &str) -> Result<Sum, Failure> {
    let counters = heap_counters().ok_or("no allocator is declared")?;
    let counted = Sum {
        blocks: usize::try_from(counters.live_blocks())?,
        bytes: usize::try_from(counters.live_bytes())?,
    };
    if std::env::var_os("DMD").is_none() {
        return Ok(counted);
    }
    let snapshot = memreport::snapshot();
    let summary = Dump::of(&snapshot).ok_or("DMD sleeps")?.summary();
    let parts = [summary.unreported, summary.once, summary.twice];
    let tabled = Sum {
        blocks: parts.iter().map(|part| part.blocks).sum(),
        bytes: parts.iter().map(|part| part.bytes).sum(),
    };
    if tabled != counted || tabled.bytes != summary.heap_allocated || summary.lost_blocks > 0 {
        return Err(format!("{step}: {counted:?} is counted, {tabled:?} in the table").into());
    }
    Ok(counted)
}

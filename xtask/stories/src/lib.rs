//! The parts that all programs share: a counting allocator below DMD, and the end of each.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Write as _};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use memreport::{HeapStatistics, UsableSize};

/// Usable bytes of live blocks, by glibc.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The number of live blocks.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted.
#[derive(Debug, Clone, Copy)]
pub struct Counted;

fn usable(block: *mut u8) -> usize {
    // SAFETY: callers pass null or live blocks of the system's allocator.
    unsafe { libc::malloc_usable_size(block.cast()) }
}

fn count(block: *mut u8) -> *mut u8 {
    BYTES.fetch_add(usable(block), Relaxed);
    BLOCKS.fetch_add(usize::from(!block.is_null()), Relaxed);
    block
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        count(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        count(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(usable(block), Relaxed);
        BLOCKS.fetch_sub(1, Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let before = usable(block);
        // SAFETY: the caller's contract is the same.
        let moved = unsafe { System.realloc(block, layout, size) };
        if !moved.is_null() {
            BYTES.fetch_add(usable(moved), Relaxed);
            BYTES.fetch_sub(before, Relaxed);
        }
        moved
    }
}

// SAFETY: the system's sizes of the system's blocks.
unsafe impl UsableSize for Counted {
    const SPACING: usize = <System as UsableSize>::SPACING;

    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller's contract is the same.
        unsafe { System.usable_size(block, layout) }
    }

    fn statistics(&self) -> Option<HeapStatistics> {
        System.statistics()
    }
}

/// Prints the counters, and saves a report to the file that the first argument names, if there is
/// one. Then prints the result of the program's work, by which two versions are compared.
///
/// # Errors
/// Standard output is closed, or the file cannot be written.
pub fn end(result: impl FnOnce() -> u64) -> io::Result<()> {
    let (bytes, blocks) = (BYTES.load(Relaxed), BLOCKS.load(Relaxed));
    writeln!(io::stdout(), "live {bytes} {blocks}")?;
    if let Some(report) = std::env::args_os().nth(1) {
        memreport::snapshot().save(report)?;
    }
    writeln!(io::stdout(), "result {:x}", result())
}

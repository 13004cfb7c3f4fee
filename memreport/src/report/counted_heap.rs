//! Reports the memory of code whose structures cannot be walked, by counting its allocations.
#![expect(unsafe_code, reason = "allocates and frees on behalf of its caller")]

use core::alloc::Layout;
use core::sync::atomic::AtomicI64;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use std::alloc::{GlobalAlloc, alloc, alloc_zeroed, dealloc, realloc};
use std::sync::{Mutex, PoisonError};

use super::reporter::{Reporter, Reports, amount};
use crate::allocator::declaration::usable_size;
use crate::event::on_alloc;
use crate::report::Report;

/// A counting wrapper of the global allocator, for libraries that take `malloc` and `free` hooks.
///
/// Counts usable bytes if an allocator is declared. DMD treats its blocks as reported for as long
/// as they live, so a second reporter of them shows up as a double report.
///
/// ```
/// use std::alloc::{GlobalAlloc, Layout};
/// use memreport::CountedHeap;
///
/// static SQLITE: CountedHeap = CountedHeap::new("explicit/sqlite", "Memory used by SQLite.");
/// memreport::reporter!(|reports| memreport::Reporter::collect(&SQLITE, reports));
///
/// # fn main() {
/// let layout = Layout::new::<[u64; 16]>();
/// let block = unsafe { SQLITE.alloc(layout) };
/// assert!(SQLITE.live_bytes() >= 128);
/// unsafe { SQLITE.dealloc(block, layout) };
/// assert_eq!(SQLITE.live_bytes(), 0);
/// # }
/// ```
#[derive(Debug)]
pub struct CountedHeap {
    path: &'static str,
    description: &'static str,
    live: AtomicI64,
    /// The number among the heaps that report on allocation; 0 until the first block.
    number: AtomicU32,
}

/// The paths of all heaps that have allocated. A heap's number is its position from 1.
static PATHS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Returns the path of the heap with this number.
#[must_use]
pub fn on_alloc_path(number: u32) -> Option<&'static str> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    PATHS.lock().unwrap_or_else(PoisonError::into_inner).get(index).copied()
}

impl CountedHeap {
    /// Creates a heap that reports its live bytes at `path`.
    #[must_use]
    pub const fn new(path: &'static str, description: &'static str) -> Self {
        CountedHeap { path, description, live: AtomicI64::new(0), number: AtomicU32::new(0) }
    }

    /// Returns the usable bytes of the live blocks.
    pub fn live_bytes(&self) -> i64 {
        self.live.load(Relaxed)
    }

    fn number(&self) -> u32 {
        match self.number.load(Relaxed) {
            0 => self.take_number(),
            number => number,
        }
    }

    #[cold]
    fn take_number(&self) -> u32 {
        let mut paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been first.
        if self.number.load(Relaxed) == 0 {
            paths.push(self.path);
            self.number.store(u32::try_from(paths.len()).unwrap_or(0), Relaxed);
        }
        self.number.load(Relaxed)
    }

    /// Counts the result of `allocate`: null, or a block of the global allocator with this layout.
    ///
    /// # Safety
    ///
    /// `allocate` returns such a block or null.
    unsafe fn attributed_to(&self, allocate: impl FnOnce() -> *mut u8, layout: Layout) -> *mut u8 {
        let block = on_alloc::attributed_to(self.number(), allocate);
        if !block.is_null() {
            // SAFETY: fresh from the global allocator.
            self.live.fetch_add(amount(unsafe { usable_size(block, layout) }), Relaxed);
        }
        block
    }
}

// SAFETY: every call goes to the global allocator with unchanged arguments. Counting does not
// panic.
unsafe impl GlobalAlloc for CountedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is passed through.
        let allocate = || unsafe { alloc(layout) };
        // SAFETY: the closure returns a block of this layout or null.
        unsafe { self.attributed_to(allocate, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is passed through.
        let allocate = || unsafe { alloc_zeroed(layout) };
        // SAFETY: the closure returns a block of this layout or null.
        unsafe { self.attributed_to(allocate, layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block lives until the next line.
        self.live.fetch_sub(amount(unsafe { usable_size(block, layout) }), Relaxed);
        // SAFETY: the caller's contract is passed through.
        unsafe { dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the block lives until the reallocation below.
        let before = amount(unsafe { usable_size(block, layout) });
        // SAFETY: the caller of `realloc` vouches that the size fits the alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: all three are passed through.
        let reallocate = || unsafe { realloc(block, layout, new_size) };
        // SAFETY: the closure returns a block of this layout or null.
        let moved = unsafe { self.attributed_to(reallocate, new_layout) };
        if !moved.is_null() {
            self.live.fetch_sub(before, Relaxed);
        }
        moved
    }
}

/// Reports the list of paths, which is memory too.
pub(crate) fn report_list(reports: &mut Reports<'_>) {
    let paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
    if paths.capacity() > 0 {
        reports.measure(
            "explicit/memreport/counted-heaps",
            &*paths,
            "The list of heaps that report by counter.",
        );
    }
}

impl Reporter for CountedHeap {
    fn collect(&self, reports: &mut Reports<'_>) {
        reports.add_counted(Report::heap(self.path, self.live_bytes(), self.description));
    }
}

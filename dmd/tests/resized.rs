//! Tests that a block is in no counter while its allocator resizes it, which may copy for long.
#![expect(unsafe_code, reason = "implements an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use dmd::{Dump, Options};
use memreport::{HeapCounters, UsableSize, heap_counters};

/// The system's allocator. It stores the live bytes of the heap while it resizes a large block.
struct Watched;

/// The least size of a large block, in bytes.
const LARGE: usize = 1 << 20;

/// The live bytes of the heap during the last resize.
static LIVE: AtomicU64 = AtomicU64::new(0);

/// A size that the allocator refuses, in bytes.
const TOO_LARGE: usize = 1 << 40;

// SAFETY: forwards unchanged, or returns null, which any allocator may.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: forwarded.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: forwarded.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.size() >= LARGE {
            LIVE.store(live(), Relaxed);
        }
        if new_size >= TOO_LARGE {
            return ptr::null_mut();
        }
        // SAFETY: forwarded.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

// SAFETY: the inner allocator's sizes of its own blocks.
unsafe impl UsableSize for Watched {
    const SPACING: usize = <System as UsableSize>::SPACING;
    const ALIGN: usize = <System as UsableSize>::ALIGN;

    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: forwarded.
        unsafe { System.usable_size(block, layout) }
    }
}

dmd::global_allocator!(Watched: Watched);

fn live() -> u64 {
    heap_counters().as_ref().map_or(0, HeapCounters::live_bytes)
}

/// Returns the usable bytes of a dump's blocks of at least `least` requested bytes.
fn in_dump(least: usize) -> usize {
    let snapshot = memreport::snapshot();
    let sizes = Dump::of(&snapshot).expect("DMD is awake").by_requested_size();
    sizes.range(least..).map(|(_, sum)| sum.bytes).sum()
}

#[test]
fn a_block_is_in_no_counter_while_it_is_resized() {
    dmd::start(Options::default()).expect("it can start");
    let mut block: Vec<u8> = black_box(Vec::with_capacity(LARGE));
    let usable = in_dump(LARGE) as u64;
    assert!(usable >= LARGE as u64, "{usable}");
    let before = live();
    block.reserve_exact(2 * LARGE);
    let after = live();
    assert_eq!(before - LIVE.load(Relaxed), usable);
    assert_eq!(in_dump(LARGE) as u64, after - LIVE.load(Relaxed), "the new one alone");

    // A block that stays as it is counts again.
    let usable = in_dump(LARGE) as u64;
    let before = live();
    let refused = block.try_reserve_exact(TOO_LARGE);
    let after = live();
    assert!(refused.is_err());
    assert_eq!((before - LIVE.load(Relaxed), after), (usable, before));
    assert_eq!(in_dump(LARGE) as u64, usable);
    drop(black_box(block));
    assert_eq!(in_dump(LARGE), 0);
}

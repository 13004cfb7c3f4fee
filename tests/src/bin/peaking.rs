//! A program whose heap has its peak for an instant, between much smaller sizes.
//!
//! `peaking FILE one|many` writes the high-water mark of its blocks in the scope `counted`, which
//! an allocator of its own counts, to the file.
#![expect(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::io;
use std::sync::Barrier;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use memreport::UsableSize;

dmd::global_allocator!(Counted(System): Counted<System>);

/// The bytes in counted blocks, and the most there ever were.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// True while this thread's blocks are counted.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

/// An allocator that counts bytes.
struct Counted<A>(A);

// SAFETY: every call goes to the inner allocator. `realloc` is the default: a new block and a copy.
unsafe impl<A: UsableSize> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let block = unsafe { self.0.alloc(layout) };
        if COUNTS.get() && !block.is_null() {
            // SAFETY: a live block of the inner allocator.
            let usable = unsafe { self.0.usable_size(block, layout) };
            HIGHEST.fetch_max(LIVE.fetch_add(usable, Relaxed) + usable, Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if COUNTS.get() {
            // SAFETY: a live block of the inner allocator.
            LIVE.fetch_sub(unsafe { self.0.usable_size(block, layout) }, Relaxed);
        }
        // SAFETY: the caller's contract.
        unsafe { self.0.dealloc(block, layout) };
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

/// Grows and shrinks a heap of blocks of many sizes. `at_top` runs when it is biggest.
fn grow_and_shrink(seed: usize, at_top: impl Fn()) {
    let _scope = memreport::enter_scope("counted");
    COUNTS.set(true);
    let mut blocks: Vec<Box<[u8]>> = Vec::with_capacity(2000);
    let mut random = seed;
    for number in 0..2000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        blocks.push(vec![1; 16 + (random >> 40) % 3000].into_boxed_slice());
        // One half of the first blocks is gone when the others come.
        if number % 3 == 1 && number < 1000 {
            drop(blocks.swap_remove(random % blocks.len()));
        }
    }
    at_top();
    blocks.truncate(100);
    (0..500).for_each(|size| drop(black_box(vec![2_u8; size])));
    drop(blocks);
    COUNTS.set(false);
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.get(1).is_some_and(|word| word == "many") {
        let all = Barrier::new(4);
        std::thread::scope(|scope| {
            for seed in 1..=4 {
                let all = &all;
                // No thread shrinks before all are biggest, so there is one peak.
                let wait = || {
                    all.wait();
                };
                scope.spawn(move || grow_and_shrink(seed, wait));
            }
        });
    } else {
        grow_and_shrink(7, || ());
    }
    std::fs::write(&words[0], HIGHEST.load(Relaxed).to_string())
}

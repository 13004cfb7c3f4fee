//! Computes the usable size of a jemalloc block from its layout, without reading memory.
//!
//! A query looks the block up in jemalloc's radix tree, which costs more than the rest of a hook.
//! But the usable size is a function of the layout, which jemalloc relies on itself when a block is
//! freed with its size. Size classes up to 128 bytes are multiples of 16; above, each doubling has
//! four (<https://jemalloc.net/jemalloc.3.html#size_classes>). From 5.3.1 on, sizes above 32 KiB
//! are rounded up to pages instead, unless an option forbids it: for them `nallocx` is called.
//!
//! Builds and options of jemalloc can change its classes. So the formula is first compared with
//! jemalloc's answers for every class. If any differs, every block is queried.
#![expect(unsafe_code, reason = "calls jemalloc for the comparison")]

use core::alloc::Layout;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicUsize};

/// The least request that the formula is for. Smaller ones, which few programs have, are in a class
/// of 8 bytes.
const LEAST: usize = 9;

/// The alignment that every block of [`LEAST`] bytes or more has without a request for it.
const ALIGN: usize = 16;

/// The largest class that the formula is used for.
const LARGEST: usize = 32 << 10;

/// The number of sizes from [`LEAST`] on that the formula is used for: 0 until it was compared.
static COMPUTED: AtomicUsize = AtomicUsize::new(0);

/// The result of the comparison: one of the constants below.
static COMPARED: AtomicU8 = AtomicU8::new(UNDECIDED);

const UNDECIDED: u8 = 0;
const AGREES: u8 = 1;
const DIFFERS: u8 = 2;

/// Returns the usable bytes of a block.
///
/// # Safety
///
/// `block` is a live block of jemalloc, and `layout` is the one of the call that allocated or last
/// resized it.
#[inline]
pub(super) unsafe fn usable_size(block: *const u8, layout: Layout) -> usize {
    // Relaxed: before it changes, all blocks take the slow path.
    let computed = COMPUTED.load(Relaxed);
    if layout.size().wrapping_sub(LEAST) < computed && layout.align() <= ALIGN {
        return of_request(layout.size());
    }
    // SAFETY: the caller's contract.
    unsafe { usable_size_slow(block, layout) }
}

/// Returns the class of a request of at least [`LEAST`] bytes and at most [`LARGEST`].
#[inline]
fn of_request(size: usize) -> usize {
    let last = size - 1;
    // Classes are multiples of a quarter of the power of two below them, and of 16 at least.
    let unit = 1_usize << ((last | 64).ilog2() - 2);
    (last | (unit - 1)) + 1
}

/// Returns the usable bytes of a block with another size or alignment, and of the first block.
///
/// # Safety
///
/// See [`usable_size`].
#[cold]
#[inline(never)]
unsafe fn usable_size_slow(block: *const u8, layout: Layout) -> usize {
    let agrees = match COMPARED.load(Relaxed) {
        UNDECIDED => compare(),
        compared => compared == AGREES,
    };
    if agrees {
        return nallocx(layout.size(), flags(layout));
    }
    // SAFETY: a live block, by the caller's contract.
    unsafe { tikv_jemallocator::usable_size(block) }
}

/// Compares the formula with jemalloc, and returns whether they agree.
///
/// Threads that compare at the same time get the same result.
fn compare() -> bool {
    let agrees = classes().all(|class| {
        let Class { least, size } = class;
        [least, size]
            .into_iter()
            .all(|request| of_request(request) == size && nallocx(request, 0) == size)
    });
    let agrees = agrees && BLOCKS.iter().all(|size| has_computed_size(*size));
    if agrees {
        COMPUTED.store(LARGEST - LEAST + 1, Relaxed);
    }
    COMPARED.store(if agrees { AGREES } else { DIFFERS }, Relaxed);
    agrees
}

/// The sizes of blocks that are allocated for the comparison: small, large, and rounded to pages.
const BLOCKS: [usize; 7] = [9, 24, 100, 1000, 10_000, 20_000, 100_000];

/// A size class: the usable bytes of its blocks, and the least request that gets one.
struct Class {
    least: usize,
    size: usize,
}

/// Returns all classes that the formula is used for, in ascending order.
fn classes() -> impl Iterator<Item = Class> {
    core::iter::successors(Some(Class { least: LEAST, size: of_request(LEAST) }), |class| {
        let least = class.size + 1;
        Some(Class { least, size: of_request(least) })
    })
    .take_while(|class| class.size <= LARGEST)
}

/// Returns whether a new block of this size has the usable bytes that `nallocx` computes.
fn has_computed_size(size: usize) -> bool {
    // SAFETY: the size is not 0.
    let block: *mut c_void = unsafe { tikv_jemalloc_sys::mallocx(size, 0) };
    if block.is_null() {
        return false;
    }
    // SAFETY: live until the last line.
    let usable = unsafe { tikv_jemalloc_sys::sallocx(block, 0) };
    // SAFETY: from `mallocx`, and not used after this.
    unsafe { tikv_jemalloc_sys::dallocx(block, 0) };
    usable == nallocx(size, 0)
}

/// Returns the usable bytes that a new block of this size would have.
fn nallocx(size: usize, flags: c_int) -> usize {
    // SAFETY: it only computes. No caller's size is 0.
    unsafe { tikv_jemalloc_sys::nallocx(size, flags) }
}

/// Returns the flags that tikv-jemallocator requests a layout with.
fn flags(layout: Layout) -> c_int {
    if layout.align() <= ALIGN && layout.align() <= layout.size() {
        0
    } else {
        tikv_jemalloc_sys::MALLOCX_ALIGN(layout.align())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the query's answer for a block, and the computed size.
    fn sizes(block: *mut c_void, layout: Layout) -> [usize; 2] {
        // SAFETY: a live block of jemalloc with this layout.
        let queried = unsafe { tikv_jemallocator::usable_size(block) };
        // SAFETY: as above.
        [queried, unsafe { usable_size(block.cast(), layout) }]
    }

    #[test]
    fn the_formula_is_used_and_equals_the_query_for_every_size_and_alignment() {
        let large = (12..28).flat_map(|bits| {
            let power = 1_usize << bits;
            [power - 1, power, power + 1, power + power / 4 + 1, power + power / 3]
        });
        for size in (1..=2 * LARGEST).step_by(7).chain(1..600).chain(large) {
            for align in (0..15).map(|bits| 1 << bits) {
                let layout = Layout::from_size_align(size, align).expect("it fits");
                // SAFETY: the size is not 0.
                let block = unsafe { tikv_jemalloc_sys::mallocx(size, flags(layout)) };
                let [queried, computed] = sizes(block, layout);
                assert_eq!(computed, queried, "{layout:?}");
                // SAFETY: not used after this.
                unsafe { tikv_jemalloc_sys::dallocx(block, 0) };
            }
        }
        assert_eq!(COMPARED.load(Relaxed), AGREES);
    }

    #[test]
    fn a_resized_block_has_the_size_of_its_new_layout() {
        use std::alloc::GlobalAlloc as _;

        use tikv_jemallocator::Jemalloc;
        for align in [1, 8, 16, 32, 64, 4096] {
            let mut layout = Layout::from_size_align(24, align).expect("it fits");
            // SAFETY: the size is not 0.
            let mut block = unsafe { Jemalloc.alloc(layout) };
            let mut random = 1_usize;
            for _ in 0..20_000 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                // Any size up to 4 MiB; smaller ones are more likely.
                let size = ((random >> 40) >> (random >> 35 & 15)) + 1;
                let size = size.min(4 << 20);
                // SAFETY: a live block of this layout; the size is not 0 and far from the limit.
                block = unsafe { Jemalloc.realloc(block, layout, size) };
                layout = Layout::from_size_align(size, align).expect("it fits");
                let [queried, computed] = sizes(block.cast(), layout);
                assert_eq!(computed, queried, "{layout:?}");
            }
            // SAFETY: not used after this.
            unsafe { Jemalloc.dealloc(block, layout) };
        }
    }
}

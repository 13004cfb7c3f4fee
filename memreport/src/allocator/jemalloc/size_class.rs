//! Computes the usable size of a jemalloc block from its layout, without reading memory.
//!
//! A query looks the block up in jemalloc's radix tree, which costs more than the rest of a hook.
//! But the usable size is a function of the layout, which jemalloc relies on itself when a block is
//! freed with its size. Size classes up to 128 bytes are multiples of 16; above, each doubling has
//! four (<https://jemalloc.net/jemalloc.3.html#size_classes>). Large blocks are queried: from 5.3.1
//! on, an option decides how blocks above 32 KiB are rounded.
//!
//! Builds of jemalloc can have other classes. So the classes are first compared with jemalloc's
//! answers. If any differs, every block is queried.
#![expect(unsafe_code, reason = "calls jemalloc for the comparison")]

use core::alloc::Layout;

/// The least request that has a class of 16 bytes or more. Smaller ones have one of 8.
const LEAST: usize = 9;

/// The alignment that every block of [`LEAST`] bytes or more has without a request for it.
const ALIGN: usize = 16;

/// The unit of the classes.
const UNIT: usize = 16;

/// The largest class in the table: its number of units fits a byte.
const LARGEST: usize = 3584;

/// The classes of requests of up to 16, 32, … bytes, in units: four cache lines.
static CLASSES: [u8; LARGEST / UNIT] = {
    let mut classes = [0; LARGEST / UNIT];
    let mut index = 0;
    while index < classes.len() {
        #[expect(clippy::cast_possible_truncation, reason = "at most 224 units")]
        let units = (class((index + 1) * UNIT) / UNIT) as u8;
        classes[index] = units;
        index += 1;
    }
    classes
};

/// Returns the class of a request of at least [`LEAST`] bytes and at most [`LARGEST`].
const fn class(size: usize) -> usize {
    let last = size - 1;
    // Classes are multiples of a quarter of the power of two below them, and of a unit.
    let quarter = 1_usize << ((last | 64).ilog2() - 2);
    (last | (quarter - 1)) + 1
}

/// Returns the usable bytes of a block that was allocated or last resized with this layout, if
/// [`agrees`] is true. Returns `None` for large blocks and large alignments.
#[inline(always)]
pub(super) fn usable_size(layout: Layout) -> Option<usize> {
    let size = layout.size();
    let units = *CLASSES.get(size.wrapping_sub(1) / UNIT)?;
    let is_in_table = size >= LEAST && layout.align() <= ALIGN;
    is_in_table.then_some(usize::from(units) * UNIT)
}

/// Returns whether jemalloc has the classes of the table, and its blocks are of these sizes. The
/// result is the same each time.
pub(super) fn agrees() -> bool {
    (LEAST..=LARGEST).all(|size| {
        // The least and the largest request of each class.
        let is_end = class(size) == size || size == LEAST || class(size - 1) < class(size);
        // SAFETY: it only computes, and the size is not 0.
        !is_end || unsafe { tikv_jemalloc_sys::nallocx(size, 0) } == class(size)
    }) && [24, 100, 1000, LARGEST].into_iter().all(agrees_with_block)
}

/// Returns whether a new block of this size has the usable size of its class.
fn agrees_with_block(size: usize) -> bool {
    // SAFETY: the size is not 0.
    let block = unsafe { tikv_jemalloc_sys::mallocx(size, 0) };
    if block.is_null() {
        return false;
    }
    // SAFETY: live until the last line.
    let usable = unsafe { tikv_jemalloc_sys::sallocx(block, 0) };
    // SAFETY: from `mallocx`, and not used after this.
    unsafe { tikv_jemalloc_sys::dallocx(block, 0) };
    usable == class(size)
}

#[cfg(test)]
mod tests {
    use std::alloc::GlobalAlloc as _;

    use tikv_jemallocator::Jemalloc;

    use super::*;

    fn assert_equals_query(block: *mut u8, layout: Layout) {
        // SAFETY: a live block of jemalloc.
        let queried = unsafe { tikv_jemallocator::usable_size(block) };
        let is_large = layout.size() > LARGEST || layout.align() > ALIGN || layout.size() < LEAST;
        assert_eq!(usable_size(layout), (!is_large).then_some(queried), "{layout:?}");
    }

    #[test]
    fn sizes_from_layouts_equal_the_query() {
        assert!(agrees());
        for size in 1..5000 {
            for align in (0..13).map(|bits| 1 << bits) {
                let layout = Layout::from_size_align(size, align).expect("it fits");
                // SAFETY: the size is not 0.
                let block = unsafe { Jemalloc.alloc(layout) };
                assert_equals_query(block, layout);
                // SAFETY: not used after this.
                unsafe { Jemalloc.dealloc(block, layout) };
            }
        }
    }

    #[test]
    fn a_resized_block_has_the_size_of_its_new_layout() {
        for align in [1, 8, 16, 32, 4096] {
            let mut layout = Layout::from_size_align(24, align).expect("it fits");
            // SAFETY: the size is not 0.
            let mut block = unsafe { Jemalloc.alloc(layout) };
            let mut random = 1_usize;
            for _ in 0..20_000 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                // Up to 64 KiB; smaller ones are more likely.
                let size = ((random >> 48) >> (random >> 35 & 15)) + 1;
                // SAFETY: a live block of this layout; the size is not 0 and far from the limit.
                block = unsafe { Jemalloc.realloc(block, layout, size) };
                layout = Layout::from_size_align(size, align).expect("it fits");
                assert_equals_query(block, layout);
            }
            // SAFETY: not used after this.
            unsafe { Jemalloc.dealloc(block, layout) };
        }
    }
}

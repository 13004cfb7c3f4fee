//! Computes the usable size of a block of jemalloc, mimalloc or snmalloc from its layout, without
//! reading memory.
//!
//! A query looks the block up in a table of the allocator, which costs more than the rest of a
//! hook. But the usable size is a function of the layout, which jemalloc and snmalloc rely on
//! themselves when a block is freed with its size; in mimalloc it is one if blocks are requested
//! without an alignment. Size classes up to 128 bytes are multiples of 16; above, each doubling has
//! four (<https://jemalloc.net/jemalloc.3.html#size_classes>; snmalloc's `ds/sizeclasstable.h`;
//! mimalloc's `page-queue.c`). Hooks have the classes of small blocks in a table. Those of blocks
//! up to 32 KiB are computed apart, for jemalloc. Larger blocks are queried: from 5.3.1 on, an
//! option of jemalloc decides how they are rounded; snmalloc rounds those above 64 KiB to powers of
//! two. So are the smallest of jemalloc and mimalloc, which have 8 bytes.
//!
//! Builds of an allocator can have other classes. So the classes are first compared with its
//! answers. If any differs, every block is queried.

use core::alloc::Layout;

/// The least request that has a class of 16 bytes or more. Smaller ones have one of 8.
const LEAST: usize = 9;

/// The alignment that every block of [`LEAST`] bytes or more has without a request for it.
pub(super) const ALIGN: usize = 16;

/// The unit of the classes.
const UNIT: usize = 16;

/// The largest class in the table.
pub(super) const LARGEST: usize = 3584;

/// The largest class that is computed.
pub(super) const LARGEST_COMPUTED: usize = 32 << 10;

/// The classes of requests of up to 16, 32, … bytes: seven cache lines.
static CLASSES: [u16; LARGEST / UNIT] = {
    let mut classes = [0; LARGEST / UNIT];
    let mut index = 0;
    while index < classes.len() {
        #[expect(clippy::cast_possible_truncation, reason = "at most 3584")]
        let bytes = class((index + 1) * UNIT) as u16;
        classes[index] = bytes;
        index += 1;
    }
    classes
};

/// Returns the class of a request of at least [`LEAST`] bytes and at most [`LARGEST_COMPUTED`].
const fn class(size: usize) -> usize {
    let last = size - 1;
    // Classes are multiples of a quarter of the power of two below them, and of a unit.
    let quarter = 1_usize << ((last | 64).ilog2() - 2);
    (last | (quarter - 1)) + 1
}

/// Returns the usable bytes of a block that was allocated or last resized with this layout, if
/// [`agrees`] is true of its allocator. Returns `None` for large blocks and large alignments.
#[cfg(any(feature = "jemalloc", feature = "mimalloc", test))]
#[inline(always)]
pub(super) fn usable_size(layout: Layout) -> Option<usize> {
    let usable = usable_size_from_16(layout)?;
    (layout.size() >= LEAST).then_some(usable)
}

/// Returns the same of a block for which at least 16 bytes were requested. The layout may have
/// fewer.
#[inline(always)]
pub(super) fn usable_size_from_16(layout: Layout) -> Option<usize> {
    let usable = *CLASSES.get(layout.size().wrapping_sub(1) / UNIT)?;
    (layout.align() <= ALIGN).then_some(usize::from(usable))
}

/// Returns the same of a block that is too large for the table. Returns `None` above
/// [`LARGEST_COMPUTED`], and for large alignments.
#[cfg_attr(not(feature = "jemalloc"), expect(dead_code, reason = "for jemalloc's blocks"))]
#[inline]
pub(super) fn computed_size(layout: Layout) -> Option<usize> {
    let is_computed = layout.size() > LARGEST && layout.size() <= LARGEST_COMPUTED;
    (is_computed && layout.align() <= ALIGN).then(|| class(layout.size()))
}

/// Returns whether an allocator has these classes up to `largest`, which is one of them. `class_of`
/// returns the usable size of its blocks for a request of this size.
pub(super) fn agrees(largest: usize, class_of: impl Fn(usize) -> Option<usize>) -> bool {
    let mut least = LEAST;
    while least <= largest {
        let class = class(least);
        // The least and the largest request of the class.
        if [least, class].into_iter().any(|size| class_of(size) != Some(class)) {
            return false;
        }
        least = class + 1;
    }
    true
}

/// Tests that the sizes from layouts are those of an allocator's queries.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::allocator::UsableSize;

    #[expect(unsafe_code, reason = "asks an allocator about a block")]
    fn assert_equals_query<A: UsableSize>(allocator: &A, block: *mut u8, layout: Layout) {
        assert!(layout.size() < 16 || block.addr() % A::ALIGN == 0, "{block:?} {layout:?}");
        // SAFETY: a live block of the allocator, whose layout is unknown to it.
        let queried = unsafe { allocator.usable_size(block, Layout::new::<()>()) };
        // SAFETY: a live block of this layout.
        assert_eq!(unsafe { allocator.usable_size(block, layout) }, queried, "{layout:?}");
        let is_large = layout.size() > LARGEST || layout.align() > ALIGN || layout.size() < LEAST;
        assert_eq!(usable_size(layout), (!is_large).then_some(queried), "{layout:?}");
        let larger = Layout::from_size_align(layout.size().max(16), layout.align());
        let larger = larger.expect("16 bytes fit");
        assert_eq!(usable_size_from_16(layout), usable_size(larger), "{layout:?}");
    }

    #[expect(unsafe_code, reason = "calls an allocator")]
    pub(in crate::allocator) fn sizes_from_layouts_equal_the_query(allocator: &impl UsableSize) {
        assert!(allocator.prepare_sizes());
        // Of the larger ones both ends of each class.
        let is_end = |size: &usize| class(*size) == *size || class(*size - 1) == *size - 1;
        let larger = (5000..=LARGEST_COMPUTED + 1).filter(is_end);
        for size in (1..5000).chain(larger) {
            for align in (0..13).map(|bits| 1 << bits) {
                let layout = Layout::from_size_align(size, align).expect("it fits");
                // SAFETY: the size is not 0.
                let zeroed = unsafe { allocator.counted_alloc_zeroed(layout) };
                assert_equals_query(allocator, zeroed, layout);
                // SAFETY: a live block of this layout, which is not used after this.
                unsafe { allocator.counted_dealloc(zeroed, layout) };
                // SAFETY: the size is not 0.
                let block = unsafe { allocator.counted_alloc(layout) };
                assert_equals_query(allocator, block, layout);
                // SAFETY: a live block of this layout.
                let prepared = unsafe { allocator.prepared_size(block, layout) };
                assert!(prepared.is_none() || size <= LARGEST, "{layout:?}");
                // SAFETY: the same, with an unknown layout.
                let queried = unsafe { allocator.usable_size(block, Layout::new::<()>()) };
                assert!(prepared.is_none_or(|usable| usable == queried), "{layout:?}");
                match prepared {
                    // SAFETY: the same, and the block is not used after this.
                    Some(usable) => unsafe { allocator.prepared_dealloc(block, layout, usable) },
                    // SAFETY: the same.
                    None => unsafe { allocator.counted_dealloc(block, layout) },
                }
            }
        }
    }

    #[test]
    fn an_allocator_with_another_class_does_not_agree() {
        assert!(agrees(LARGEST_COMPUTED, |size| Some(class(size))));
        let mut classes = 0;
        for wrong in (LEAST..=LARGEST_COMPUTED).filter(|size| class(*size) == *size) {
            for other in [None, Some(wrong + UNIT)] {
                let one_differs =
                    |size| if class(size) == wrong { other } else { Some(class(size)) };
                assert_eq!(agrees(LARGEST, one_differs), wrong > LARGEST, "{wrong}");
                assert!(!agrees(LARGEST_COMPUTED, one_differs), "{wrong}");
            }
            // The least request of a class is in the one below it.
            let begins_later =
                |size| if class(size) == wrong && size < wrong { None } else { Some(class(size)) };
            assert!(!agrees(LARGEST_COMPUTED, begins_later), "{wrong}");
            classes += 1;
        }
        assert_eq!(classes, 8 + 8 * 4);
    }

    #[expect(unsafe_code, reason = "calls an allocator")]
    pub(in crate::allocator) fn a_resized_block_has_the_size_of_its_new_layout(
        allocator: &impl UsableSize,
    ) {
        for align in [1, 8, 16, 32, 4096] {
            let mut layout = Layout::from_size_align(24, align).expect("it fits");
            // SAFETY: the size is not 0.
            let mut block = unsafe { allocator.counted_alloc(layout) };
            let mut random = 1_usize;
            for _ in 0..20_000 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                // Up to 64 KiB; smaller ones are more likely.
                let size = ((random >> 48) >> (random >> 35 & 15)) + 1;
                // SAFETY: a live block of this layout; the size is not 0 and far from the limit.
                block = unsafe { allocator.counted_realloc(block, layout, size) };
                layout = Layout::from_size_align(size, align).expect("it fits");
                assert_equals_query(allocator, block, layout);
            }
            // SAFETY: not used after this.
            unsafe { allocator.dealloc(block, layout) };
        }
    }
}

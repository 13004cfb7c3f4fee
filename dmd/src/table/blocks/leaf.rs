//! Leaves of the radix tree: one word for each granule of 1 MiB of address space.
//!
//! ```text
//! words 0-1    bitmap of touched pages: only these are read, so the others stay non-resident
//! word 2       overlap: start of the block that covers the leaf's beginning from below, or 0
//! HEADER..     one word for each granule
//! ```

use std::ops::Range;

use super::granule::Granule;
use crate::mem::lazy_slice::LazySlice;
use crate::mem::sync::AtomicU64;
use crate::mem::sync::Ordering::{Relaxed, Release};
use crate::mem::sys;

/// The bits of an address within a leaf. Under loom the whole table has two leaves of four
/// granules, since loom tries every interleaving. Under Miri it is of a gibibyte of addresses,
/// since Miri takes minutes for a pass over all nodes.
pub(super) const LEAF_BITS: u32 = if cfg!(loom) {
    7
} else if cfg!(miri) {
    14
} else {
    20
};

/// The words in one page: the unit of the bitmap of touched pages.
pub(super) const WORDS_PER_PAGE: usize =
    if cfg!(loom) { 2 } else { sys::PAGE / size_of::<AtomicU64>() };

/// The words of the bitmap of touched pages.
pub(super) const TOUCHED_WORDS: usize = 2;
/// The index of the overlap word.
pub(super) const OVERLAP: usize = TOUCHED_WORDS;
/// The number of words before the granules, which begin on a page of their own.
pub(super) const HEADER: usize = if cfg!(loom) { OVERLAP + 1 } else { WORDS_PER_PAGE };

/// A leaf. Its words are mapped when a block first starts in it or extends into it.
#[repr(transparent)]
pub(super) struct Leaf {
    pub(super) words: LazySlice<AtomicU64>,
}

#[expect(unsafe_code, reason = "a null pointer is a leaf that is not mapped yet")]
// SAFETY: all zeros is an empty `LazySlice`, which has no destructor.
unsafe impl crate::mem::lazy_slice::Zeroed for Leaf {
    #[cfg(loom)]
    fn zero() -> Self {
        Leaf { words: LazySlice::new() }
    }
}

/// Stores the word of a live block.
#[inline(always)]
pub(super) fn store_word(words: &[AtomicU64], index: usize, word: u64) {
    // Release, with the Acquire in `Blocks::read_word`: a record is written before the word that
    // names it.
    words[HEADER + index].store(word, Release);
    if !is_touched(words, index) {
        mark_touched(words, index);
    }
}

/// Returns whether the last byte of a block, and the byte after it, are in the same leaf as the
/// first. Its usable bytes are then fewer than a leaf has.
#[inline(always)]
pub(super) fn ends_in_leaf(address: usize, usable: usize) -> bool {
    (address & ((1 << LEAF_BITS) - 1)) + usable < 1 << LEAF_BITS
}

/// Returns whether the last byte of a block is in another leaf than the first. For a block without
/// bytes the result does not matter: it covers no further leaf.
#[inline]
pub(super) fn crosses_leaves(address: usize, usable: usize) -> bool {
    (address & ((1 << LEAF_BITS) - 1)).saturating_add(usable) > 1 << LEAF_BITS
}

/// Returns the numbers of the further leaves that a block extends into.
pub(super) fn further_leaves(address: usize, usable: usize) -> Range<usize> {
    let (first, end) = (address >> LEAF_BITS, address.saturating_add(usable).saturating_sub(1));
    first + 1..(end >> LEAF_BITS) + 1
}

/// Returns the index of an address's granule in its leaf.
#[inline]
pub(super) fn word_index(granule: Granule, address: usize) -> usize {
    (address & ((1 << LEAF_BITS) - 1)) >> granule.shift
}

/// Marks the page of a word as touched. Pages that are never touched are never read, and so never
/// become resident.
#[cold]
#[inline(never)]
fn mark_touched(words: &[AtomicU64], index: usize) {
    let page = index / WORDS_PER_PAGE;
    // Relaxed: a bit is never cleared. A reader on another thread may miss a block that is being
    // inserted.
    words[page / 64].fetch_or(1 << (page % 64), Relaxed);
}

#[inline(always)]
pub(super) fn is_touched(words: &[AtomicU64], index: usize) -> bool {
    let page = index / WORDS_PER_PAGE;
    // Relaxed: the thread that frees a block received it after its insertion, so it sees the bit. A
    // thread that inserts one sets it again at worst.
    words[page / 64].load(Relaxed) >> (page % 64) & 1 != 0
}

/// Returns the touched pages of a leaf, in ascending order.
pub(super) fn touched_pages(words: &[AtomicU64]) -> impl Iterator<Item = usize> {
    let touched: [u64; TOUCHED_WORDS] = std::array::from_fn(|index| words[index].load(Relaxed));
    (0..TOUCHED_WORDS * 64).filter(move |page| touched[page / 64] >> (page % 64) & 1 != 0)
}

//! Leaves of the radix tree: one word for each granule of 8 MiB of address space.
//!
//! A leaf's words have a mapping of their own, which is made when a block first starts in the leaf
//! or extends into it. Beside their address stand the pages of words that are in use, so that the
//! others are never read, and never become resident; and for each *span*, 1 MiB of addresses, the
//! block that extends into it from below. A block that lies in one span needs no mark.
//!
//! The words of 4 or 8 MiB of blocks fill a huge page. New leaves have huge pages, as long as the
//! leaves so far are dense: a word is mostly not in the cache, and then the translation of its
//! address is not either.

use std::ops::Range;
use std::sync::atomic::AtomicUsize as Counter;

use super::granule::Granule;
use crate::mem::lazy_slice::LazySlice;
use crate::mem::sync::Ordering::{Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU32, AtomicU64};
use crate::mem::sys;

/// The bits of an address within a leaf. Under loom the whole table has two leaves of four
/// granules, since loom tries every interleaving. Under Miri it is of a gibibyte of addresses,
/// since Miri takes minutes for a pass over all nodes.
pub(super) const LEAF_BITS: u32 = if cfg!(loom) {
    7
} else if cfg!(miri) {
    14
} else {
    23
};

/// The bits of an address that choose a leaf in its node.
pub(super) const MIDDLE_BITS: u32 = if cfg!(loom) {
    1
} else if cfg!(miri) {
    6
} else {
    11
};

/// The number of leaves in a node.
const LEAVES: usize = 1 << MIDDLE_BITS;

/// The bits of an address within a span.
pub(super) const SPAN_BITS: u32 = if cfg!(any(loom, miri)) { LEAF_BITS } else { 20 };

/// The number of spans in a leaf.
const SPANS: usize = 1 << (LEAF_BITS - SPAN_BITS);

/// The words in one page: the unit of the bitmap of touched pages.
pub(super) const WORDS_PER_PAGE: usize =
    if cfg!(loom) { 2 } else { sys::PAGE / size_of::<AtomicU64>() };

/// The words of a node's bitmap of touched pages, for the smallest granule.
const TOUCHED_WORDS: usize =
    (1_usize << (LEAF_BITS + MIDDLE_BITS - 4)).div_ceil(WORDS_PER_PAGE * 64);

/// The pages in a huge page.
const PAGES_PER_HUGE_PAGE: usize = sys::HUGE_PAGE / sys::PAGE;

/// The words in a huge page.
const WORDS_PER_HUGE_PAGE: usize = PAGES_PER_HUGE_PAGE * WORDS_PER_PAGE;

/// The most huge pages that the words of a leaf fill.
const HUGE_PAGES: usize = if cfg!(any(loom, miri)) { 1 } else { 2 };

/// The bit in a number of touched pages that is set if the kernel was advised to back them with a
/// huge page. It may have had none.
const IS_ADVISED: u32 = 1 << 31;

/// The pages of words that are in use, and those that are resident if the kernel had a huge page
/// wherever it was advised to use one: a counter each, so Relaxed.
static TOUCHED: Counter = Counter::new(0);
static RESIDENT: Counter = Counter::new(0);

/// Returns whether a new leaf is to have huge pages: if those so far hold a huge page of words, and
/// at least half of what is resident. So the words take little more than twice the memory that they
/// would take in small pages.
fn are_dense() -> bool {
    let touched = TOUCHED.load(Relaxed);
    // Loom repeats a model, and the counters would remember its earlier runs.
    let is_model = cfg!(loom);
    !is_model && touched >= PAGES_PER_HUGE_PAGE && 2 * touched >= RESIDENT.load(Relaxed)
}

/// Some leaves in a row. Each array fills whole pages.
#[repr(C)]
pub(super) struct Node {
    /// By leaf: its words. A free reads nothing else.
    words: [LazySlice<AtomicU64>; LEAVES],
    /// A bitmap of the pages of words that are in use, by [`page`].
    touched: [AtomicU64; TOUCHED_WORDS],
    leaves: [Leaf; LEAVES],
}

/// The marks and counts of a leaf. Some leaves fill a page.
#[repr(align(128))]
struct Leaf {
    /// By span: the start of the block that covers its beginning from below, or 0.
    overlaps: [AtomicU64; SPANS],
    /// By huge page of words: the number of touched pages, and `IS_ADVISED`.
    touched_counts: [AtomicU32; HUGE_PAGES],
}

#[expect(unsafe_code, reason = "null pointers are leaves that are not mapped yet")]
// SAFETY: all zeros is an empty `LazySlice`, which has no destructor, and atomics that are 0.
unsafe impl crate::mem::lazy_slice::Zeroed for Node {
    #[cfg(loom)]
    fn zero() -> Self {
        use std::array::from_fn;
        Node {
            words: from_fn(|_| LazySlice::new()),
            touched: from_fn(|_| AtomicU64::new(0)),
            leaves: from_fn(|_| Leaf {
                overlaps: from_fn(|_| AtomicU64::new(0)),
                touched_counts: from_fn(|_| AtomicU32::new(0)),
            }),
        }
    }
}

/// A leaf with its words.
#[derive(Clone, Copy)]
pub(super) struct MappedLeaf {
    node: &'static Node,
    number: usize,
    pub(super) words: &'static [AtomicU64],
}

impl Node {
    /// Returns the leaf of an address, if its words are mapped.
    #[inline(always)]
    pub(super) fn leaf(&'static self, granule: Granule, address: usize) -> Option<MappedLeaf> {
        self.numbered(granule, address >> LEAF_BITS & (LEAVES - 1))
    }

    /// Returns the leaf of an address, and maps its words if necessary. Returns `None` when memory
    /// is short.
    #[inline]
    pub(super) fn leaf_or_alloc(
        &'static self,
        granule: Granule,
        address: usize,
    ) -> Option<MappedLeaf> {
        let number = address >> LEAF_BITS & (LEAVES - 1);
        let has_huge_pages = || {
            let has = are_dense();
            if has {
                let counts = self.leaves[number].touched_counts.iter();
                counts.for_each(|count| _ = count.fetch_or(IS_ADVISED, Relaxed));
            }
            has
        };
        let words = self.words[number].get_or_alloc_aligned(granule.words(), has_huge_pages)?;
        Some(MappedLeaf { node: self, number, words })
    }

    /// Returns the mapped leaves, each with its number in the node.
    pub(super) fn leaves(
        &'static self,
        granule: Granule,
    ) -> impl Iterator<Item = (usize, MappedLeaf)> {
        (0..LEAVES).filter_map(move |number| Some((number, self.numbered(granule, number)?)))
    }

    #[inline(always)]
    fn numbered(&'static self, granule: Granule, number: usize) -> Option<MappedLeaf> {
        let words = self.words[number].get(granule.words())?;
        Some(MappedLeaf { node: self, number, words })
    }

    /// Returns whether a page of words is in use.
    #[inline(always)]
    fn is_touched(&self, page: usize) -> bool {
        // Relaxed: the thread that frees a block received it after its insertion, so it sees the
        // bit. A thread that inserts one sets it again at worst.
        self.touched[page / 64 % TOUCHED_WORDS].load(Relaxed) >> (page % 64) & 1 != 0
    }

    /// Marks the page of an address's word as touched. Pages that are never touched are never read,
    /// and so never become resident.
    #[cold]
    #[inline(never)]
    fn mark_touched(&'static self, granule: Granule, address: usize) {
        let page = page(granule, address);
        // Relaxed: a bit is never cleared. A reader on another thread may miss a block that is
        // being inserted.
        let bit = 1 << (page % 64);
        let before = self.touched[page / 64 % TOUCHED_WORDS].fetch_or(bit, Relaxed);
        if before & bit == 0
            && let Some(leaf) = self.leaf(granule, address)
        {
            leaf.count_touched(word_index(granule, address) / WORDS_PER_HUGE_PAGE);
        }
    }

    /// Returns the bytes of the node, without those of leaves, whose pages are not resident. A leaf
    /// is mapped when a block comes to it.
    pub(super) fn untouched_bytes(&self, granule: Granule) -> usize {
        let are_touched = |leaves: &[LazySlice<_>]| leaves.iter().any(LazySlice::is_mapped);
        // Each array has a part for each leaf, of which several share a page.
        let of_leaf = [
            size_of::<LazySlice<AtomicU64>>(),
            granule.words() / WORDS_PER_PAGE / 8,
            size_of::<Leaf>(),
        ];
        let touched = of_leaf.map(|bytes| {
            let leaves = self.words.chunks((sys::PAGE / bytes.max(1)).max(1));
            leaves.filter(|leaves| are_touched(leaves)).count() * sys::PAGE
        });
        size_of::<Self>().saturating_sub(touched.iter().sum())
    }
}

impl MappedLeaf {
    /// Returns the word for a block at this address.
    #[inline(always)]
    pub(super) fn word(self, granule: Granule, address: usize) -> &'static AtomicU64 {
        &self.words[word_index(granule, address)]
    }

    /// Stores the word of a live block at this address.
    #[inline(always)]
    pub(super) fn store_word(self, granule: Granule, address: usize, word: u64) {
        // Release, with the Acquire in `Blocks::read_word`: a record is written before the word
        // that names it.
        self.word(granule, address).store(word, Release);
        if !self.node.is_touched(page(granule, address)) {
            self.node.mark_touched(granule, address);
        }
    }

    /// Returns whether the page of the word with this index is in use.
    pub(super) fn is_touched(self, granule: Granule, index: usize) -> bool {
        self.node.is_touched((self.number * granule.words() + index) / WORDS_PER_PAGE)
    }

    /// Returns whether a block at this address may be among the words.
    #[inline]
    pub(super) fn may_hold(self, granule: Granule, address: usize) -> bool {
        self.node.is_touched(page(granule, address))
    }

    fn leaf(self) -> &'static Leaf {
        &self.node.leaves[self.number]
    }

    /// Counts a touched page. The kernel is not asked what it has granted: this is a hook.
    fn count_touched(self, huge_page: usize) {
        TOUCHED.fetch_add(1, Relaxed);
        let count = self.leaf().touched_counts.get(huge_page);
        // Relaxed: a counter.
        match count.map_or(0, |count| count.fetch_add(1, Relaxed)) {
            IS_ADVISED => RESIDENT.fetch_add(PAGES_PER_HUGE_PAGE, Relaxed),
            before if before & IS_ADVISED == 0 => RESIDENT.fetch_add(1, Relaxed),
            _ => 0,
        };
    }

    /// Returns the bytes of the words whose pages are not resident. Asks the kernel about huge
    /// pages.
    pub(super) fn untouched_bytes(self) -> usize {
        let counts = self.leaf().touched_counts.iter().map(|count| count.load(Relaxed));
        let touched = |(huge_page, count): (usize, u32)| {
            let words = || self.words.chunks_exact(WORDS_PER_HUGE_PAGE).nth(huge_page);
            let touched = (count & !IS_ADVISED) as usize;
            // A kernel may grant huge pages without advice, too.
            match touched > 0 && words().is_some_and(sys::are_resident) {
                true => PAGES_PER_HUGE_PAGE,
                false => touched,
            }
        };
        let touched: usize = counts.enumerate().map(touched).sum();
        size_of_val(self.words).saturating_sub(touched * sys::PAGE)
    }

    /// Returns the indices of the first words of touched pages, in ascending order.
    pub(super) fn touched_pages(self, granule: Granule) -> impl Iterator<Item = usize> {
        let pages = (0..self.words.len()).step_by(WORDS_PER_PAGE);
        pages.filter(move |first| self.is_touched(granule, *first))
    }

    /// Returns the start of the block that covers the beginning of this address's span from below;
    /// 0 if there is none.
    pub(super) fn overlap(self, address: usize) -> u64 {
        // Acquire, with the Release in `set_overlap`.
        self.leaf().overlaps[(address >> SPAN_BITS) % SPANS].load(Acquire)
    }

    /// Sets the start that [`overlap`](Self::overlap) returns.
    pub(super) fn set_overlap(self, address: usize, start: usize) {
        self.leaf().overlaps[(address >> SPAN_BITS) % SPANS].store(start as u64, Release);
    }
}

/// Returns whether the last byte of a block, and the byte after it, are in the same span as the
/// first. Its usable bytes are then fewer than a span has.
#[inline(always)]
pub(super) fn ends_in_span(address: usize, usable: usize) -> bool {
    (address & ((1 << SPAN_BITS) - 1)) + usable < 1 << SPAN_BITS
}

/// Returns whether the last byte of a block is in another span than the first. For a block without
/// bytes the result does not matter: it covers no further span.
#[inline]
pub(super) fn crosses_spans(address: usize, usable: usize) -> bool {
    (address & ((1 << SPAN_BITS) - 1)).saturating_add(usable) > 1 << SPAN_BITS
}

/// Returns the numbers of the further spans that a block extends into.
pub(super) fn further_spans(address: usize, usable: usize) -> Range<usize> {
    let (first, end) = (address >> SPAN_BITS, address.saturating_add(usable).saturating_sub(1));
    first + 1..(end >> SPAN_BITS) + 1
}

/// Returns the number of the page of an address's word in its node.
#[inline(always)]
fn page(granule: Granule, address: usize) -> usize {
    (address & ((1 << (LEAF_BITS + MIDDLE_BITS)) - 1))
        >> (granule.shift + WORDS_PER_PAGE.trailing_zeros())
}

/// Returns the index of an address's granule in its leaf.
#[inline(always)]
pub(super) fn word_index(granule: Granule, address: usize) -> usize {
    (address & ((1 << LEAF_BITS) - 1)) >> granule.shift
}

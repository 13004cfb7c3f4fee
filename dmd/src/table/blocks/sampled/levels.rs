//! The levels of the compact table: each is a hash table of buckets, four times as long as the one
//! before.
//!
//! A level is mapped when a bucket of the level before is full. So the memory is proportional to
//! the largest number of entries that there ever were. An entry never moves: a look-up reads its
//! bucket on each level that is mapped.

use super::entry::{Entry, Name, Words};
use crate::mem::lazy_slice::LazySlice;
use crate::mem::sync::Ordering::Relaxed;
use crate::mem::sync::{AtomicU64, array_of, const_fn};
use crate::mem::sys;

/// The entries of a bucket: two cache lines.
pub(super) const BUCKET: usize = if cfg!(loom) { 2 } else { 8 };

/// The number of levels. All together have 698,368 entries.
pub(super) const LEVELS: usize = if cfg!(loom) { 2 } else { 5 };

/// The bits of the number of a bucket on the first level: its entries have 32 KiB.
const FIRST_BITS: u32 = if cfg!(loom) {
    0
} else if cfg!(miri) {
    // Miri visits every entry of a level at each access.
    2
} else {
    8
};

/// The additional bits on each further level.
const MORE_BITS: u32 = if cfg!(loom) {
    0
} else if cfg!(miri) {
    1
} else {
    2
};

const fn bucket_bits(level: usize) -> u32 {
    let (mut bits, mut before) = (FIRST_BITS, 0);
    while before < level {
        bits += MORE_BITS;
        before += 1;
    }
    bits
}

/// Returns the number of entries of a level.
const fn length(level: usize) -> usize {
    BUCKET << bucket_bits(level)
}

/// The entries in a page.
const PER_PAGE: usize = if cfg!(any(loom, miri)) { BUCKET } else { sys::PAGE / size_of::<Words>() };

/// Returns the number of pages of all levels before this one.
const fn first_page(level: usize) -> usize {
    let (mut pages, mut before) = (0, 0);
    while before < level {
        pages += length(before) / PER_PAGE;
        before += 1;
    }
    pages
}

const TOUCHED_WORDS: usize = first_page(LEVELS).div_ceil(64);

/// The hash tables, and the bitmap of their touched pages. Only touched pages are read.
pub(super) struct Levels {
    levels: [LazySlice<Words>; LEVELS],
    touched: [AtomicU64; TOUCHED_WORDS],
}

/// The entries of one bucket.
struct Bucket {
    words: &'static [Words],
    page: usize,
}

impl Levels {
    const_fn! {
        pub(super) fn new() -> Self {
            Levels {
                levels: array_of!(LazySlice::new(); LEVELS),
                touched: array_of!(AtomicU64::new(0); TOUCHED_WORDS),
            }
        }
    }

    /// Inserts an entry into a bucket of this span. Returns `false` if they are full, or memory is
    /// short.
    pub(super) fn insert(&self, span: usize, name: Name, word: u64) -> bool {
        for (level, entries) in self.levels.iter().enumerate() {
            let Some(entries) = entries.get_or_alloc(length(level)) else { return false };
            let bucket = Bucket::of(level, entries, span);
            if bucket.words.iter().any(|words| Entry::insert(words, name, word)) {
                self.mark_touched(bucket.page);
                return true;
            }
        }
        false
    }

    /// Returns the entries in the buckets of a span, some of which may be for other spans.
    pub(super) fn entries_around(&self, span: usize) -> impl Iterator<Item = Entry> {
        let buckets = self.mapped().map(move |(level, entries)| Bucket::of(level, entries, span));
        let touched = buckets.filter(|bucket| self.is_touched(bucket.page));
        touched.flat_map(|bucket| bucket.words).filter_map(Entry::of)
    }

    /// Returns the entries of this name. They are in the buckets of this span.
    pub(super) fn entries_of(&self, span: usize, name: Name) -> impl Iterator<Item = Entry> {
        self.entries_around(span).filter(move |entry| entry.name() == name)
    }

    /// Returns all entries in use.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let pages = self
            .mapped()
            .flat_map(|(level, entries)| (first_page(level)..).zip(entries.chunks(PER_PAGE)));
        let touched = pages.filter(|(page, _)| self.is_touched(*page));
        touched.flat_map(|(_, entries)| entries).filter_map(Entry::of)
    }

    /// Returns the bytes mapped for pages that were never touched, and so are not resident.
    pub(super) fn untouched_bytes(&self) -> usize {
        // Relaxed, as in `is_touched`.
        let touched = self.touched.iter().map(|word| word.load(Relaxed).count_ones() as usize);
        self.mapped_bytes().saturating_sub(touched.sum::<usize>() * sys::PAGE)
    }

    pub(super) fn mapped_bytes(&self) -> usize {
        self.mapped().map(|(_, entries)| size_of_val(entries)).sum()
    }

    /// Returns the mapped levels, with their numbers.
    fn mapped(&self) -> impl Iterator<Item = (usize, &'static [Words])> {
        let levels = self.levels.iter().enumerate();
        levels.map_while(|(level, entries)| Some((level, entries.get(length(level))?)))
    }

    fn is_touched(&self, page: usize) -> bool {
        // Relaxed: the thread that frees a block received it after its insertion, so it sees the
        // bit. A reader on another thread may miss a block that is being inserted.
        self.touched[page / 64].load(Relaxed) >> (page % 64) & 1 != 0
    }

    fn mark_touched(&self, page: usize) {
        if !self.is_touched(page) {
            // Relaxed: a bit is never cleared.
            self.touched[page / 64].fetch_or(1 << (page % 64), Relaxed);
        }
    }
}

impl Bucket {
    fn of(level: usize, entries: &'static [Words], span: usize) -> Self {
        // Fibonacci hashing, which spreads neighbouring spans evenly.
        let hash = (span as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = bucket_bits(level);
        let bucket = hash.checked_shr(u64::BITS - bits).unwrap_or(0);
        let first = usize::try_from(bucket).unwrap_or(0) * BUCKET;
        let words = entries.get(first..first + BUCKET).unwrap_or(&[]);
        Bucket { words, page: first_page(level) + first / PER_PAGE }
    }
}

//! A lock-free cache from the hash of a stack to its site.
//!
//! An entry has two words: half of the hash, and the rest of the hash with the site. Together they
//! contain 104 bits of the hash, so a collision is as rare as a memory error. Threads overwrite
//! entries without a lock. A reader that combines words of two entries sees that the hash does not
//! match.
//!
//! The cache grows once, when it has replaced many entries: a stack belongs to its thread, so
//! programs with many threads have many. Entries of the small cache are not copied, since a stack
//! that is met again is inserted again.

use crate::mem::lazy_slice::LazySlice;
use crate::mem::sync::Ordering::{Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU32, AtomicU64, const_fn};
use crate::table::packed_block::SiteId;

/// The factors of the two words. Their product is 3 more than a multiple of 4.
const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

const _: () = assert!(FACTORS[0].wrapping_mul(FACTORS[1]) % 4 == 3);

/// The hash of a stack: of its thread and its frames, one after the other.
///
/// The two words are independent. Each step is a bijection of a word for every frame, and of a
/// frame for every word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackHash(u64, u64);

impl StackHash {
    /// The hash of no thread.
    pub(crate) const EMPTY: Self = StackHash(0, 0);

    /// Returns the hash of an empty stack on this thread.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn of_thread(number: u32) -> Self {
        StackHash(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344).with_frame(number as usize)
    }

    /// Returns the hash with one more frame.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn with_frame(self, address: usize) -> Self {
        let address = address as u64;
        // Multiplication carries upwards only, so the high half comes down first.
        let first = self.0.rotate_left(32) ^ address;
        let second = self.1.rotate_left(29).wrapping_add(address);
        StackHash(first.wrapping_mul(FACTORS[0]), second.wrapping_mul(FACTORS[1]))
    }

    /// Returns the hash with two more frames, which takes two multiplications less than one after
    /// the other.
    ///
    /// Two pairs of addresses never give the same two words. For their differences `d` and `e`,
    /// both `d * FACTORS[0] + e` and `e * FACTORS[1] + d` would be 0, so `e` times one less than
    /// the product of the factors as well. That is even, but no multiple of 4, and addresses have
    /// fewer than 63 bits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn with_frames(self, frames: [usize; 2]) -> Self {
        self.with_frames_by(frames, FACTORS)
    }

    /// Returns the hash with two more frames, as [`with_frames`](Self::with_frames) does, by the
    /// factors of [`hidden_factors`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn with_frames_by(self, [inner, outer]: [usize; 2], factors: [u64; 2]) -> Self {
        let (inner, outer) = (inner as u64, outer as u64);
        let first = self.0.rotate_left(32).wrapping_add(inner).wrapping_mul(factors[0]);
        let second = self.1.rotate_left(29).wrapping_add(outer).wrapping_mul(factors[1]);
        StackHash(first.wrapping_add(outer), second.wrapping_add(inner))
    }

    /// Returns the hash of the frames of both: those of `outer` follow.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn with_outer(self, outer: StackHash) -> Self {
        let StackHash(first, second) = self;
        StackHash(first ^ outer.0, second.wrapping_add(outer.1))
    }

    /// Returns one of the two words.
    pub(crate) fn first(self) -> u64 {
        self.0
    }

    /// Returns the hash of a stack whose blocks have this scope and reporter, in one word.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn with_attribution(self, attribution: u32) -> Self {
        // Always: the last frames are not in all bits of the words before.
        self.with_frame(attribution as usize)
    }
}

/// Returns the factors, hidden from the compiler: in a loop that needs all registers it would load
/// them for each multiplication. If they are in memory, a multiplication reads them there.
#[inline(always)]
pub(crate) fn hidden_factors() -> [u64; 2] {
    std::hint::black_box(FACTORS)
}

/// The number of bits of a site.
const SITE_BITS: u32 = 24;
const SITE: u64 = (1 << SITE_BITS) - 1;

/// The number of entries at first. A look-up searches a row, which is one cache line.
const SMALL: usize = if cfg!(loom) { ROW } else { 1 << 16 };
/// The number of entries of the cache that has grown.
const LARGE: usize = if cfg!(loom) { 2 * ROW } else { 1 << 18 };
const ROW: usize = 4;

/// The number of replaced entries after which the cache grows.
const REPLACED: u32 = if cfg!(loom) { 1 } else { 1 << 14 };

pub(crate) struct StackCache {
    small: LazySlice<AtomicU64>,
    /// Once it is mapped, it alone is read.
    large: LazySlice<AtomicU64>,
    /// The number of entries that were replaced in the small cache: a counter, so Relaxed.
    replaced: AtomicU32,
}

impl StackCache {
    const_fn! {
        pub(crate) fn new() -> Self {
            StackCache {
                small: LazySlice::new(),
                large: LazySlice::new(),
                replaced: AtomicU32::new(0),
            }
        }
    }

    /// Returns the site of the stack with this hash.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn get(&self, hash: StackHash) -> Option<SiteId> {
        let row = self.row(hash)?;
        for [first, second] in row {
            // Relaxed: both words are checked against the hash. One comparison after the other:
            // nearly always the first entry is the stack's.
            if first.load(Relaxed) != hash.0 {
                continue;
            }
            // Acquire, with the Release of `insert`: a thread that finds a site sees its content,
            // and so does a reader of the block that gets it.
            let second = second.load(Acquire);
            if (second ^ hash.1) & !SITE == 0 {
                return site(second);
            }
        }
        None
    }

    /// Returns the row of a stack, in the large cache if the cache has grown.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn row(&self, hash: StackHash) -> Option<&'static [[AtomicU64; 2]; ROW]> {
        match self.large.get(2 * LARGE) {
            Some(words) => row(words, hash, LARGE),
            None => row(self.small.get(2 * SMALL)?, hash, SMALL),
        }
    }

    /// Returns the row to insert a stack into.
    fn row_to_insert(&self, hash: StackHash) -> Option<&'static [[AtomicU64; 2]; ROW]> {
        if self.replaced.load(Relaxed) >= REPLACED
            && let Some(words) = self.large.get_or_alloc_dense(2 * LARGE)
        {
            return row(words, hash, LARGE);
        }
        row(self.small.get_or_alloc(2 * SMALL)?, hash, SMALL)
    }

    /// Inserts the site of a stack. In a full row it replaces an entry.
    #[cold]
    pub(crate) fn insert(&self, hash: StackHash, site: SiteId) {
        let Some(row) = self.row_to_insert(hash) else { return };
        let free = row.iter().position(|[first, _]| first.load(Relaxed) == 0);
        if free.is_none() && self.replaced.load(Relaxed) < REPLACED {
            self.replaced.fetch_add(1, Relaxed);
        }
        // These bits of the hash are not stored, and so choose the entry independently.
        let place = free.unwrap_or((hash.1 & SITE) as usize % ROW);
        if let Some([first, second]) = row.get(place) {
            // Release, with the Acquire of `get`.
            second.store(hash.1 & !SITE | u64::from(site.number()), Release);
            first.store(hash.0, Relaxed);
        }
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn site(word: u64) -> Option<SiteId> {
    u32::try_from(word & SITE).ok().filter(|number| *number != 0).map(SiteId::from_number)
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn row(
    words: &'static [AtomicU64],
    hash: StackHash,
    entries: usize,
) -> Option<&'static [[AtomicU64; 2]; ROW]> {
    let rows = words.as_chunks::<2>().0.as_chunks::<ROW>().0;
    rows.get((hash.0 >> SITE_BITS) as usize % (entries / ROW))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn hash(number: u32) -> StackHash {
        let number = number as usize;
        (0..number % 40).fold(StackHash::of_thread(1), |hash, depth| {
            hash.with_frame(0x5555_5555_0000 + 7 * (number / (depth + 1)))
        })
    }

    #[test]
    fn in_a_full_row_any_entry_is_replaced() {
        let cache = StackCache::new();
        let hash = |number: u64| StackHash(1 + number, number.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let inserted = 0..200;
        for number in inserted.clone() {
            cache.insert(hash(number), SiteId::from_number(7));
        }
        let kept: Vec<u64> = inserted.filter(|number| cache.get(hash(*number)).is_some()).collect();
        assert_eq!(kept.len(), ROW, "{kept:?}");
        assert!(kept[0] > 100, "the first ones are gone: {kept:?}");
    }

    #[test]
    fn a_cache_that_replaces_many_entries_grows_and_keeps_nearly_all() {
        let cache = StackCache::new();
        let hash = |number: u64| {
            let number = number + 1;
            StackHash(number.wrapping_mul(FACTORS[0]), number.wrapping_mul(FACTORS[1]))
        };
        let kept = |count: u64| (0..count).filter(|at| cache.get(hash(*at)).is_some()).count();
        // As a program does: what is not found is inserted.
        let meet = |count: u64| {
            for number in (0..count).filter(|at| cache.get(hash(*at)).is_none()) {
                cache.insert(hash(number), SiteId::from_number(7));
            }
        };
        meet(20_000);
        assert!(cache.large.get(2 * LARGE).is_none() && kept(20_000) > 19_000);
        for _ in 0..3 {
            meet(130_000);
        }
        assert!(cache.large.get(2 * LARGE).is_some() && kept(130_000) > 120_000);
    }

    #[test]
    fn a_stack_has_its_own_site_or_none() {
        let cache = StackCache::new();
        assert_eq!(cache.get(hash(1)), None);
        let site = |number: u32| SiteId::from_number(number * 13 + 1);
        for number in 0..50_000 {
            cache.insert(hash(number), site(number));
        }
        let mut kept = 0;
        for number in 0..50_000 {
            if let Some(found) = cache.get(hash(number)) {
                // Some of these stacks are equal.
                let same = hash((found.number() - 1) / 13) == hash(number);
                assert!(same, "{number}");
                kept += 1;
            }
        }
        assert!(kept > 30_000, "{kept}");
    }

    #[test]
    fn the_order_of_frames_and_the_thread_tell_stacks_apart() {
        let of = |thread, frames: &[usize]| {
            frames.iter().fold(StackHash::of_thread(thread), |hash, frame| hash.with_frame(*frame))
        };
        let all = [of(1, &[]), of(1, &[4, 8]), of(1, &[8, 4]), of(1, &[4, 8, 8]), of(2, &[4, 8])];
        for (index, hash) in all.iter().enumerate() {
            let others = all.iter().skip(index + 1);
            assert!(others.clone().all(|other| other.0 != hash.0 && other.1 != hash.1));
        }
    }

    #[test]
    fn each_bit_of_a_frame_changes_both_words() {
        let (start, frame) = (StackHash::of_thread(1), 0x5555_5555_0000);
        let of_one: fn(StackHash, usize) -> StackHash = StackHash::with_frame;
        for hash in [
            of_one,
            |hash, inner| hash.with_frames([inner, 7]),
            |hash, outer| hash.with_frames([7, outer]),
        ] {
            for bit in 0..47 {
                let (other, own) = (hash(start, frame ^ 1 << bit), hash(start, frame));
                assert!(other.0 != own.0 && other.1 != own.1, "bit {bit}");
            }
        }
    }

    #[test]
    fn pairs_whose_first_words_are_equal_have_different_second_words() {
        let start = StackHash::of_thread(1);
        let own = start.with_frames([1 << 40, 1 << 41]);
        // Differences of 1 and of minus the factor make up for each other in one word.
        let outer = usize::try_from((1_u64 << 41).wrapping_sub(FACTORS[0])).unwrap_or(0);
        let other = start.with_frames([(1 << 40) + 1, outer]);
        assert!(own.0 == other.0 && own.1 != other.1);
    }
}

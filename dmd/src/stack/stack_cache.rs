//! A lock-free cache from the hash of a stack to its site.
//!
//! An entry has two words: half of the hash, and the rest of the hash with the site. Together they
//! contain 104 bits of the hash, so a collision is as rare as a memory error. Threads overwrite
//! entries without a lock. A reader that combines words of two entries sees that the hash does not
//! match.

use crate::mem::lazy_slice::LazySlice;
use crate::mem::sync::Ordering::{Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU64, const_fn};
use crate::table::packed_block::SiteId;

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
    #[inline(always)]
    pub(crate) fn of_thread(number: u32) -> Self {
        StackHash(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344).with_frame(number as usize)
    }

    /// Returns the hash with one more frame.
    #[inline(always)]
    pub(crate) fn with_frame(self, address: usize) -> Self {
        let address = address as u64;
        // Multiplication carries upwards only, so the high half comes down first.
        let first = self.0.rotate_left(32) ^ address;
        let second = self.1.rotate_left(29).wrapping_add(address);
        StackHash(
            first.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            second.wrapping_mul(0xd6e8_feb8_6659_fd93),
        )
    }

    /// Returns the hash of the frames of both: those of `outer` follow.
    #[inline(always)]
    pub(crate) fn with_outer(self, outer: StackHash) -> Self {
        let StackHash(first, second) = self.with_frame(0);
        StackHash(first ^ outer.0, second.wrapping_add(outer.1))
    }

    /// Returns one of the two words.
    pub(crate) fn first(self) -> u64 {
        self.0
    }

    /// Returns the hash of a stack whose blocks have this scope and reporter, in one word.
    #[inline(always)]
    pub(crate) fn with_attribution(self, attribution: u32) -> Self {
        if attribution == 0 { self } else { self.with_frame(attribution as usize) }
    }
}

/// The number of bits of a site.
const SITE_BITS: u32 = 24;
const SITE: u64 = (1 << SITE_BITS) - 1;

/// The number of entries. A look-up searches a row, which is one cache line.
const ENTRIES: usize = if cfg!(loom) { ROW } else { 1 << 16 };
const ROW: usize = 4;

pub(crate) struct StackCache {
    words: LazySlice<AtomicU64>,
}

impl StackCache {
    const_fn! {
        pub(crate) fn new() -> Self {
            StackCache { words: LazySlice::new() }
        }
    }

    /// Returns the site of the stack with this hash.
    #[inline(always)]
    pub(crate) fn get(&self, hash: StackHash) -> Option<SiteId> {
        let row = row(self.words.get(2 * ENTRIES)?, hash)?;
        row.iter().find_map(|[first, second]| {
            // Acquire, with the Release of `insert`: a thread that finds a site sees its content,
            // and so does a reader of the block that gets it. The first word may be relaxed: both
            // are checked against the hash.
            let second = second.load(Acquire);
            let is_match = first.load(Relaxed) == hash.0 && (second ^ hash.1) & !SITE == 0;
            is_match.then(|| site(second))?
        })
    }

    /// Inserts the site of a stack. In a full row it replaces an entry.
    #[cold]
    pub(crate) fn insert(&self, hash: StackHash, site: SiteId) {
        let Some(row) = self.words.get_or_alloc(2 * ENTRIES).and_then(|words| row(words, hash))
        else {
            return;
        };
        let free = row.iter().position(|[first, _]| first.load(Relaxed) == 0);
        // These bits of the hash are not stored, and so choose the entry independently.
        let place = free.unwrap_or((hash.1 & SITE) as usize % ROW);
        if let Some([first, second]) = row.get(place) {
            // Release, with the Acquire of `get`.
            second.store(hash.1 & !SITE | u64::from(site.number()), Release);
            first.store(hash.0, Relaxed);
        }
    }
}

#[inline(always)]
fn site(word: u64) -> Option<SiteId> {
    u32::try_from(word & SITE).ok().filter(|number| *number != 0).map(SiteId::from_number)
}

#[inline(always)]
fn row(words: &'static [AtomicU64], hash: StackHash) -> Option<&'static [[AtomicU64; 2]; ROW]> {
    let rows = words.as_chunks::<2>().0.as_chunks::<ROW>().0;
    rows.get((hash.0 >> SITE_BITS) as usize % (ENTRIES / ROW))
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
        let hash = |frame: usize| StackHash::of_thread(1).with_frame(frame);
        let frame = 0x5555_5555_0000;
        for bit in 0..47 {
            let (StackHash(first, second), of_frame) = (hash(frame ^ 1 << bit), hash(frame));
            assert!(first != of_frame.0 && second != of_frame.1, "bit {bit}");
        }
    }
}

//! What was found out about a stack before: sites by the hash of all frames and of the thread, for any thread, without a lock.
//!
//! A place has two words: half of the hash in one, the rest of it and the site in the other. Together they name 104 bits of
//! the hash, so that two stacks are taken for one as seldom as a bit of memory flips on its own. Places are overwritten;
//! whoever reads a word of one and a word of another sees that they do not belong together.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::mem::pages::Lazy;
use crate::table::packed_block::SiteId;

/// The hash of a stack, from the outermost frame on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackHash(u64, u64);

impl StackHash {
    pub(crate) const NOTHING: Self = StackHash(0, 0);

    /// That of no frame, on this thread.
    #[inline(always)]
    pub(crate) fn of_thread(number: u32) -> Self {
        StackHash(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344).with(number as usize)
    }

    /// With one more frame inside.
    #[inline(always)]
    pub(crate) fn with(self, address: usize) -> Self {
        let address = address as u64;
        let product = u128::from(self.0 ^ address) * 0x9e37_79b9_7f4a_7c15_u128;
        #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
        let folded = (product >> 64) as u64 ^ product as u64;
        let other = self.1.rotate_left(29).wrapping_add(address);
        StackHash(folded, other.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }
}

/// The bits of a site.
const SITE_BITS: u32 = 24;
const SITE: u64 = (1 << SITE_BITS) - 1;

/// How many sites are remembered. A row, a line of the processor's cache, is searched as a whole.
const PLACES: usize = 1 << 16;
const ROW: usize = 4;

pub(crate) struct StackCache {
    words: Lazy<AtomicU64>,
}

impl StackCache {
    pub(crate) const fn new() -> Self {
        StackCache { words: Lazy::new() }
    }

    /// The site of the stack with this hash.
    #[inline(always)]
    pub(crate) fn get(&self, hash: StackHash) -> Option<SiteId> {
        let row = row(self.words.get(2 * PLACES)?, hash)?;
        // Each word is true on its own: no order is needed.
        row.iter().find_map(|[first, second]| {
            let second = second.load(Relaxed);
            let is_it = first.load(Relaxed) == hash.0 && (second ^ hash.1) & !SITE == 0;
            is_it.then(|| site(second))?
        })
    }

    /// Remembers the site of a stack. Where its row is full, another one is forgotten.
    #[cold]
    pub(crate) fn put(&self, hash: StackHash, site: SiteId) {
        let Some(row) = self.words.get_or_make(2 * PLACES).and_then(|words| row(words, hash))
        else {
            return;
        };
        let free = row.iter().position(|[first, _]| first.load(Relaxed) == 0);
        // The bits below the site are not looked at otherwise.
        let place = free.unwrap_or((hash.1 & SITE) as usize % ROW);
        if let Some([first, second]) = row.get(place) {
            second.store(hash.1 & !SITE | u64::from(site.number()), Relaxed);
            first.store(hash.0, Relaxed);
        }
    }
}

fn site(word: u64) -> Option<SiteId> {
    u32::try_from(word & SITE).ok().filter(|number| *number != 0).map(SiteId::from_number)
}

#[inline(always)]
fn row(words: &'static [AtomicU64], hash: StackHash) -> Option<&'static [[AtomicU64; 2]; ROW]> {
    let rows = words.as_chunks::<2>().0.as_chunks::<ROW>().0;
    rows.get((hash.0 >> SITE_BITS) as usize % (PLACES / ROW))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u32) -> StackHash {
        let number = number as usize;
        (0..number % 40).fold(StackHash::of_thread(1), |hash, depth| {
            hash.with(0x5555_5555_0000 + 7 * (number / (depth + 1)))
        })
    }

    #[test]
    fn a_stack_has_its_own_site_or_none() {
        let memo = StackCache::new();
        assert_eq!(memo.get(hash(1)), None);
        let site = |number: u32| SiteId::from_number(number * 13 + 1);
        for number in 0..50_000 {
            memo.put(hash(number), site(number));
        }
        let mut kept = 0;
        for number in 0..50_000 {
            if let Some(found) = memo.get(hash(number)) {
                // Some of these stacks are the same.
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
            frames.iter().fold(StackHash::of_thread(thread), |hash, frame| hash.with(*frame))
        };
        let all = [of(1, &[]), of(1, &[4, 8]), of(1, &[8, 4]), of(1, &[4, 8, 8]), of(2, &[4, 8])];
        for (index, hash) in all.iter().enumerate() {
            let others = all.iter().skip(index + 1);
            assert!(others.clone().all(|other| other.0 != hash.0 && other.1 != hash.1));
        }
    }
}

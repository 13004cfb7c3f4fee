//! Finds the freed chunks that threads and arenas keep at hand. Their flags say that they are in
//! use.

use std::collections::{BTreeMap, HashSet};

use super::arenas::{Arena, FAST_BINS};
use super::image::{FLAGS, Image, LEAST_CHUNK, THREAD_LOCALS};

/// The number of lists of an arena's fast bins, and of a thread's cache.
const FAST_LISTS: u64 = 10;
const CACHE_LISTS: u64 = 64;

/// The most chunks that are followed in a list of fast bins.
const LONGEST: usize = 1 << 24;

/// Freed chunks, by address.
#[derive(Debug, Default)]
pub(super) struct AtHand {
    /// Chunks in the caches of threads.
    pub(super) cached: HashSet<u64>,
    /// Chunks in the fast bins of arenas.
    pub(super) fast: HashSet<u64>,
    /// The number of threads whose caches are damaged. Their chunks look used.
    pub(super) damaged: usize,
    /// The chunks that describe the caches.
    pub(super) descriptions: HashSet<u64>,
}

/// Finds all chunks at hand.
pub(super) fn at_hand(image: &Image, arenas: &[Arena]) -> AtHand {
    let mut found = AtHand::default();
    for arena in arenas {
        fast_bins(image, arena, &mut found.fast);
    }
    let Caches { whole, damaged } = caches(image);
    found.damaged = damaged;
    for (place, chunks) in whole {
        found.descriptions.insert(place - 16);
        found.cached.extend(chunks);
    }
    found
}

/// The caches of threads.
#[derive(Default)]
struct Caches {
    /// The places of caches, each once, and their chunks.
    whole: BTreeMap<u64, Vec<u64>>,
    /// The number of threads whose lists do not fit their counts.
    damaged: usize,
}

/// Returns the caches of all threads.
///
/// A thread-local of the C library has the address, at the same distance from each thread's
/// pointer. It is the distance at which most threads have a cache: other words may lead to a block
/// that looks like one.
fn caches(image: &Image) -> Caches {
    let at = |distance: u64| {
        let mut caches = Caches::default();
        for pointer in &image.thread_pointers {
            let place = pointer.checked_sub(distance).and_then(|at| image.areas.word(at));
            let Some((place, count_bytes)) =
                place.and_then(|place| Some((place, cache_layout(image, place)?)))
            else {
                continue;
            };
            match cache(image, place, count_bytes) {
                Some(chunks) => _ = caches.whole.insert(place, chunks),
                None => caches.damaged += 1,
            }
        }
        caches
    };
    let distances = (8..=THREAD_LOCALS).step_by(8).map(at);
    let chunks = |caches: &Caches| caches.whole.values().map(Vec::len).sum::<usize>();
    let rank = |caches: &Caches| (caches.whole.len(), chunks(caches), caches.damaged);
    distances.max_by_key(rank).unwrap_or_default()
}

/// Adds the chunks in the fast bins of an arena.
fn fast_bins(image: &Image, arena: &Arena, found: &mut HashSet<u64>) {
    for list in 0..FAST_LISTS {
        let size = LEAST_CHUNK + 16 * list;
        let mut chunk =
            image.areas.word(arena.address.wrapping_add(FAST_BINS + 8 * list)).unwrap_or(0);
        for _ in 0..LONGEST {
            if chunk == 0 || size_of(image, chunk) != Some(size) || !found.insert(chunk) {
                break;
            }
            chunk = next(image, chunk + 16, |next| size_of(image, next) == Some(size));
        }
    }
}

/// Returns the bytes of each count in the thread cache (`tcache_perthread_struct`) at this address:
/// two, or one before glibc 2.30. `None` if there is no chunk of its size.
fn cache_layout(image: &Image, place: u64) -> Option<u64> {
    // A chunk that was cut from a larger one has 16 bytes more if these would be no chunk.
    match size_of(image, place.checked_sub(16)?)? {
        0x290 | 0x2a0 => Some(2),
        0x250 | 0x260 => Some(1),
        _ => None,
    }
}

/// Returns the chunks of a thread cache; `None` if its lists are not as long as their counts.
fn cache(image: &Image, place: u64, count_bytes: u64) -> Option<Vec<u64>> {
    let mut found = Vec::new();
    for list in 0..CACHE_LISTS {
        let count = image.areas.bytes(place + count_bytes * list, count_bytes)?;
        let count = count.iter().rev().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
        let size = LEAST_CHUNK + 16 * list;
        let is_of_list = |block: u64| size_of(image, block.wrapping_sub(16)) == Some(size);
        let mut block = image.areas.word(place + count_bytes * CACHE_LISTS + 8 * list)?;
        for _ in 0..count {
            if !is_of_list(block) {
                return None;
            }
            found.push(block - 16);
            block = next(image, block, is_of_list);
        }
        if block != 0 {
            return None;
        }
    }
    Some(found)
}

/// Returns the next element of a list: the word at this place, which glibc since 2.32 combines with
/// its own address. 0 if the list ends, or is damaged.
fn next(image: &Image, place: u64, is_valid: impl Fn(u64) -> bool) -> u64 {
    let Some(word) = image.areas.word(place) else { return 0 };
    let plain = word ^ (place >> 12);
    [plain, word].into_iter().find(|next| is_valid(*next)).unwrap_or_default()
}

/// Returns the size of the chunk at this address, if it is one.
fn size_of(image: &Image, chunk: u64) -> Option<u64> {
    if !chunk.is_multiple_of(16) {
        return None;
    }
    image.areas.word(chunk.checked_add(8)?).map(|word| word & !FLAGS)
}

//! Finds the arenas, and the sums that glibc keeps of mapped chunks.

use super::image::{ARENA_ALIGN, Image, PAGE};

/// Places in an arena's state (`struct malloc_state`), in bytes from its start.
pub(super) const FAST_BINS: u64 = 16;
const TOP: u64 = 96;
const BINS: u64 = 96;
const NEXT: u64 = 2160;
const SYSTEM_MEMORY: u64 = 2184;
const MOST_SYSTEM_MEMORY: u64 = 2192;
const STATE_SIZE: u64 = 2200;

/// The number of bins, of which the first is of unsorted chunks.
const BIN_COUNT: u64 = 127;

/// The most arenas that are followed.
const MOST_ARENAS: usize = 1 << 16;

/// An arena, and the rows of chunks in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arena {
    pub(super) address: u64,
    pub(super) is_main: bool,
    /// The address of the free chunk at its end.
    pub(super) top: u64,
    /// The bytes that it has of the operating system, by its own count.
    pub(super) system: u64,
    /// The rows: where the first chunk is, and the end of the memory.
    pub(super) rows: Vec<(u64, u64)>,
    /// Bytes before the first chunks, in which the arena describes itself.
    pub(super) bookkeeping: u64,
}

/// The counts that glibc keeps of chunks that are mappings of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedCount {
    pub(super) chunks: u64,
    pub(super) bytes: u64,
    /// The address of the first chunk of the main arena.
    first: u64,
}

/// Finds the arenas: the main one in the C library's data, and those that it leads to.
pub(super) fn arenas(image: &Image, counted: Option<MappedCount>) -> Vec<Arena> {
    let Some(main) = words_of(image).find(|address| is_arena(image, *address)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut address = main;
    while found.len() < MOST_ARENAS {
        let Some(arena) = arena(image, address, address == main, counted) else { break };
        found.push(arena);
        match image.areas.word(address.wrapping_add(NEXT)) {
            Some(next) if next != main && found.iter().all(|arena| arena.address != next) => {
                address = next;
            }
            _ => break,
        }
    }
    found
}

/// Returns the address of the main arena's end, of an image without its chunks.
pub(super) fn main_top(image: &Image) -> Option<u64> {
    let main = words_of(image).find(|address| may_be_arena(image, *address))?;
    image.areas.word(main + TOP)
}

/// The least empty bins of an arena whose chunks are not copied yet.
const EMPTY_BINS: usize = 16;

/// Returns whether an arena's state may be at this address, by its empty bins alone.
fn may_be_arena(image: &Image, address: u64) -> bool {
    let bin = |number: u64| address.wrapping_add(BINS + 16 * number);
    let next = |number: u64| image.areas.word(bin(number).wrapping_add(16));
    let is_empty = |number: &u64| next(*number) == Some(bin(*number));
    is_empty(&(BIN_COUNT - 1))
        && has_sums(image, address)
        && (0..BIN_COUNT).all(|number| next(number).is_some_and(|next| next != 0))
        && (0..BIN_COUNT).filter(is_empty).count() >= EMPTY_BINS
}

/// Returns the address of each word of the C library's data.
fn words_of(image: &Image) -> impl Iterator<Item = u64> {
    image.library.iter().flat_map(|range| (range.start..range.end.saturating_sub(7)).step_by(8))
}

/// Returns whether the sums of an arena are where its state would have them: whole pages, and no
/// more than at most so far. Without them, the bins of an arena match at other addresses, too.
fn has_sums(image: &Image, address: u64) -> bool {
    let word = |at: u64| image.areas.word(address.wrapping_add(at)).unwrap_or(0);
    let (system, most) = (word(SYSTEM_MEMORY), word(MOST_SYSTEM_MEMORY));
    system != 0 && system <= most && system.is_multiple_of(PAGE) && word(TOP).is_multiple_of(16)
}

/// Returns whether an arena's state is at this address: in each bin, the chunk before the next one
/// is the bin itself.
fn is_arena(image: &Image, address: u64) -> bool {
    let word = |at: u64| image.areas.word(at);
    has_sums(image, address)
        && (0..BIN_COUNT).rev().all(|number| {
            let bin = address.wrapping_add(BINS + 16 * number);
            let Some(next) = word(bin.wrapping_add(16)) else { return false };
            next == bin || (next != 0 && word(next.wrapping_add(24)) == Some(bin))
        })
}

fn arena(
    image: &Image,
    address: u64,
    is_main: bool,
    counted: Option<MappedCount>,
) -> Option<Arena> {
    let word = |at: u64| image.areas.word(address.wrapping_add(at));
    let (top, system) = (word(TOP)?, word(SYSTEM_MEMORY)?);
    let mut arena = Arena { address, is_main, top, system, rows: Vec::new(), bookkeeping: 0 };
    if is_main {
        if let Some(heap) = &image.heap {
            let first = counted.map_or(heap.start, |counted| counted.first);
            let first = first.next_multiple_of(16);
            arena.bookkeeping = first - heap.start;
            arena.rows.push((first, heap.end));
        }
        return Some(arena);
    }
    // A heap begins with its description, and the first one has the arena's state behind it.
    let description = address % ARENA_ALIGN;
    for heap in &image.arena_heaps {
        if image.areas.word(heap.start) != Some(address) {
            continue;
        }
        let is_first = address - description == heap.start;
        let own = if is_first { description + STATE_SIZE } else { description };
        let first = heap.start + own.next_multiple_of(16);
        arena.bookkeeping += first - heap.start;
        arena.rows.push((first, heap.end));
    }
    Some(arena)
}

/// Finds the counts of mapped chunks (`struct malloc_par`): they precede the address of the main
/// arena's first chunk.
pub(super) fn mapped_count(image: &Image) -> Option<MappedCount> {
    let heap = image.heap.as_ref()?;
    words_of(image).find_map(|place| {
        let word = |back: u64| image.areas.word(place.checked_sub(back)?);
        let first = word(0).filter(|first| heap.contains(first))?;
        let (most_bytes, bytes) = (word(8)?, word(16)?);
        if bytes > most_bytes || !bytes.is_multiple_of(PAGE) {
            return None;
        }
        // Half words: the chunks now, their limit, and the most so far. Since glibc 2.35 a flag
        // comes before them.
        let halves = [word(40)?, word(32)?, word(24)?].map(|word| [word & 0xffff_ffff, word >> 32]);
        let [_, chunks, limit, most, ..] = halves.as_flattened() else { return None };
        let [_, _, older_chunks, older_limit, older_most, _] = halves.as_flattened() else {
            return None;
        };
        [(chunks, limit, most), (older_chunks, older_limit, older_most)]
            .into_iter()
            .find(|(chunks, limit, most)| {
                chunks <= most && most <= limit && **limit > 0 && (**chunks == 0) == (bytes == 0)
            })
            .map(|(chunks, ..)| MappedCount { chunks: *chunks, bytes, first })
    })
}

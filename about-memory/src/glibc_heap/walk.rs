//! Goes over the chunks of all arenas.

use super::arenas::{Arena, arenas, mapped_count};
use super::caches::{AtHand, at_hand};
use super::image::{FLAGS, HEADER, Image, LEAST_CHUNK, MAPPED_HEADER, PREVIOUS_IN_USE};

/// A number of chunks and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.blocks += 1;
        self.bytes += bytes;
    }
}

/// A block that the program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) address: u64,
    /// Its usable bytes.
    pub(crate) usable: u64,
}

/// The heap of a process. All sums but `used` are of chunks, with the words of their sizes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heap {
    /// The blocks that the program has, by address.
    pub(crate) blocks: Vec<Block>,
    /// Their usable bytes.
    pub(crate) used: Sum,
    /// The words of their sizes.
    pub(crate) headers: u64,
    /// Freed chunks in the caches of threads.
    pub(crate) cached: Sum,
    /// Freed chunks in the fast bins of arenas.
    pub(crate) fast: Sum,
    /// Freed chunks in other bins, by their sizes.
    pub(crate) free: Sum,
    pub(crate) free_sizes: Vec<u64>,
    /// The free ends of the arenas.
    pub(crate) top: u64,
    /// The descriptions of arenas and of caches.
    pub(crate) bookkeeping: u64,
    /// Bytes that arenas have, and that were not found or are damaged.
    pub(crate) unknown: u64,
    /// Blocks that are mappings of their own, which are in `blocks` and `used` too.
    pub(crate) mapped: Sum,
    pub(crate) arenas: usize,
    /// Sentences about what is missing.
    pub(crate) notes: Vec<String>,
}

/// Reads the heap. Returns `None` if there is no main arena of glibc's.
pub(crate) fn read(image: &Image) -> Option<Heap> {
    let counted = mapped_count(image);
    let arenas = arenas(image, counted);
    if arenas.is_empty() {
        return None;
    }
    let at_hand = at_hand(image, &arenas);
    let mut heap = Heap { arenas: arenas.len(), ..Heap::default() };
    if at_hand.damaged > 0 {
        heap.notes.push(format!(
            "the caches of {} threads are damaged; their freed blocks count as used",
            at_hand.damaged
        ));
    }
    for arena in &arenas {
        heap.add_arena(image, arena, &at_hand);
    }
    for (chunk, size) in &image.mapped {
        let usable = size - MAPPED_HEADER;
        heap.mapped.add(*size);
        heap.headers += MAPPED_HEADER;
        heap.add_block(chunk + MAPPED_HEADER, usable);
    }
    match counted {
        Some(counted)
            if (counted.chunks, counted.bytes) != (heap.mapped.blocks, heap.mapped.bytes) =>
        {
            let missing = counted.bytes.saturating_sub(heap.mapped.bytes);
            heap.unknown = heap.unknown.saturating_add(missing);
            heap.notes.push(format!(
                "glibc counts {} bytes in {} blocks that are mappings of their own; {} bytes in {} were found",
                counted.bytes, counted.chunks, heap.mapped.bytes, heap.mapped.blocks
            ));
        }
        _ => {}
    }
    heap.blocks.sort_by_key(|block| block.address);
    Some(heap)
}

impl Heap {
    fn add_arena(&mut self, image: &Image, arena: &Arena, at_hand: &AtHand) {
        let mut found = arena.bookkeeping;
        self.bookkeeping += arena.bookkeeping;
        for row in &arena.rows {
            found += self.add_row(image, arena.top, at_hand, *row);
        }
        // A heap has memory beyond its end that the arena does not count yet.
        if arena.system > found {
            self.unknown = self.unknown.saturating_add(arena.system - found);
            self.notes.push(format!(
                "the arena at {:x} has {} bytes, of which {} were not found",
                arena.address,
                arena.system,
                arena.system - found
            ));
        }
    }

    /// Adds the chunks of a row. Returns the bytes up to where it ends.
    fn add_row(&mut self, image: &Image, top: u64, at_hand: &AtHand, row: (u64, u64)) -> u64 {
        let (first, end) = row;
        let mut chunk = first;
        while chunk < end {
            let size = image.areas.word(chunk + 8).map_or(0, |word| word & !FLAGS);
            if chunk == top {
                let size = size.min(end - chunk);
                self.top += size;
                return chunk + size - first;
            }
            if size == 16 || (size == 0 && chunk > first) {
                // The marks at the end of a row that has no top.
                self.bookkeeping += 16;
                return chunk + 16 - first;
            }
            let next = chunk.checked_add(size).filter(|next| *next < end);
            let (Some(next), true) = (next, size >= LEAST_CHUNK && size.is_multiple_of(16)) else {
                self.notes.push(format!(
                    "the chunk at {chunk:x} is damaged; the rest of its row is left out"
                ));
                return chunk - first;
            };
            let is_used =
                image.areas.word(next + 8).is_some_and(|word| word & PREVIOUS_IN_USE != 0);
            if !is_used {
                self.free.add(size);
                self.free_sizes.push(size);
            } else if at_hand.cached.contains(&chunk) {
                self.cached.add(size);
            } else if at_hand.fast.contains(&chunk) {
                self.fast.add(size);
            } else if at_hand.descriptions.contains(&chunk) {
                self.bookkeeping += size;
            } else {
                self.headers += HEADER;
                // The word before the next chunk is the block's, too.
                self.add_block(chunk + 16, size - HEADER);
            }
            chunk = next;
        }
        chunk - first
    }

    fn add_block(&mut self, address: u64, usable: u64) {
        self.blocks.push(Block { address, usable });
        self.used.add(usable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_top_ends_behind_its_marks() {
        const FIRST: u64 = 0x5000_0000_0000;
        // A chunk of 64 bytes, and a mark, which shows that the chunk before it is used.
        let mut bytes = vec![0; 0x100];
        (bytes[8], bytes[0x48]) = (0x41, 0x11);
        let mut image = Image::default();
        image.areas.add(FIRST, bytes);
        let mut heap = Heap::default();
        let row = (FIRST, FIRST + 0x100);
        assert_eq!(heap.add_row(&image, 0, &AtHand::default(), row), 0x50);
        assert_eq!(heap.bookkeeping, 16);
        assert_eq!(heap.blocks, [Block { address: FIRST + 16, usable: 0x38 }]);
    }
}

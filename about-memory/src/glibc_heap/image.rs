//! A copy of the memory that describes a heap.

use std::ops::Range;

use super::threads::{Frame, ThreadState};

/// Copied pieces of memory, by address.
#[derive(Debug, Default)]
pub(crate) struct Areas {
    /// Sorted and apart from each other.
    list: Vec<Area>,
}

#[derive(Debug)]
struct Area {
    start: u64,
    bytes: Vec<u8>,
}

impl Areas {
    /// Adds a piece, but for what is there already.
    pub(crate) fn add(&mut self, start: u64, bytes: Vec<u8>) {
        let Some(end) = start.checked_add(bytes.len() as u64) else { return };
        let at = self.list.partition_point(|area| area.range().end <= start);
        let overlapping = self.list[at..].iter().take_while(|area| area.start < end);
        let taken: Vec<Range<u64>> = overlapping.map(Area::range).collect();
        if taken.is_empty() {
            return self.list.insert(at, Area { start, bytes });
        }
        let mut place = start;
        for hole in taken
            .iter()
            .map(|taken| taken.start)
            .chain([end])
            .zip(taken.iter().map(|taken| taken.end).chain([end]))
        {
            let (next, after) = hole;
            if place < next {
                let [from, to] =
                    [place - start, next - start].map(|at| usize::try_from(at).unwrap_or(0));
                let area = Area { start: place, bytes: bytes[from..to].to_vec() };
                let at = self.list.partition_point(|area| area.start < place);
                self.list.insert(at, area);
            }
            place = place.max(after);
        }
    }

    /// Returns the bytes at an address, if all were copied.
    pub(crate) fn bytes(&self, address: u64, length: u64) -> Option<&[u8]> {
        let at = self.list.partition_point(|area| area.start <= address).checked_sub(1)?;
        let area = &self.list[at];
        let from = usize::try_from(address - area.start).ok()?;
        area.bytes.get(from..from.checked_add(usize::try_from(length).ok()?)?)
    }

    /// Returns the word at an address, if it was copied.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(address, 8)?.try_into().ok()?))
    }

    /// Returns the sum of all pieces, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.list.iter().map(|area| area.bytes.len() as u64).sum()
    }
}

impl Area {
    fn range(&self) -> Range<u64> {
        self.start..self.start + self.bytes.len() as u64
    }
}

/// Returns two words, if these are 16 bytes.
pub(super) fn words_of(bytes: &[u8]) -> Option<[u64; 2]> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some([word(0)?, word(8)?])
}

/// All that is needed to read the heap of a process.
#[derive(Debug, Default)]
pub(crate) struct Image {
    pub(crate) areas: Areas,
    /// The addresses of the data of the C library.
    pub(crate) library: Vec<Range<u64>>,
    /// The mapping that the kernel calls `[heap]`.
    pub(crate) heap: Option<Range<u64>>,
    /// Writable mappings that begin as heaps of arenas do: at a multiple of [`ARENA_ALIGN`].
    pub(crate) arena_heaps: Vec<Range<u64>>,
    /// Chunks that are mappings of their own: their addresses and sizes.
    pub(crate) mapped: Vec<(u64, u64)>,
    /// The thread pointers (the base of `fs`).
    pub(crate) thread_pointers: Vec<u64>,
    /// Memory outside the heap that may refer to blocks, with its bytes.
    pub(crate) roots: Vec<(Root, Vec<u8>)>,
    /// The threads with their registers.
    pub(crate) threads: Vec<ThreadState>,
    /// The frames of the threads, those of each from the innermost on.
    pub(crate) frames: Vec<Frame>,
    /// Sentences about what was not copied.
    pub(crate) notes: Vec<String>,
    /// The path of the program, if a core file tells it.
    pub(crate) program: Option<String>,
}

/// Memory that may refer to blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// Its name, if it is not a module's data.
    pub(crate) name: Option<String>,
    /// The path of the module, or nothing.
    pub(crate) module: String,
    /// The address at which the module is loaded.
    pub(crate) base: u64,
    pub(crate) range: Range<u64>,
}

impl Root {
    /// Makes a root that is no module's data.
    pub(super) fn named(name: &str, range: Range<u64>) -> Self {
        Root { name: Some(name.to_owned()), module: String::new(), base: 0, range }
    }
}

/// The alignment of heaps of arenas: `HEAP_MAX_SIZE`.
pub(crate) const ARENA_ALIGN: u64 = 64 << 20;

/// The bytes below a thread pointer in which the C library's thread-locals are.
pub(crate) const THREAD_LOCALS: u64 = 4096;

pub(crate) const PAGE: u64 = 4096;

/// The flags in the word of a chunk's size.
pub(crate) const FLAGS: u64 = 7;
pub(crate) const PREVIOUS_IN_USE: u64 = 1;
pub(crate) const MAPPED: u64 = 2;

/// The bytes before a block: the word of its size, and for a mapping of its own one word more.
pub(crate) const HEADER: u64 = 8;
pub(crate) const MAPPED_HEADER: u64 = 16;

/// The least bytes of a chunk.
pub(crate) const LEAST_CHUNK: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fill_what_is_missing() {
        let mut areas = Areas::default();
        let piece = |byte: u8, length: usize| vec![byte; length];
        areas.add(16, piece(1, 16));
        areas.add(48, piece(2, 16));
        areas.add(0, piece(3, 80));
        areas.add(20, piece(4, 8));
        areas.add(u64::MAX - 3, piece(5, 8));
        let byte = |at: u64| areas.bytes(at, 1).map(|bytes| bytes[0]);
        let found: Vec<_> = [0, 15, 16, 31, 32, 47, 48, 63, 64, 79, 80].map(byte).into();
        let expected = [3, 3, 1, 1, 3, 3, 2, 2, 3, 3].map(Some).into_iter().chain([None]);
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert_eq!(areas.size(), 80);
        areas.add(0, piece(6, 80));
        assert!(areas.list.iter().all(|area| !area.bytes.is_empty()), "none is added to a piece");
        assert_eq!(areas.word(8), Some(u64::from_le_bytes([3; 8])));
        assert_eq!(areas.word(12), None, "a word is in one piece");
    }

    #[test]
    fn two_words_are_sixteen_bytes() {
        let bytes: Vec<u8> = (1..=16).collect();
        let words = [0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09];
        assert_eq!(words_of(&bytes), Some(words));
        assert_eq!(words_of(&bytes[..15]), None);
    }
}

//! Hand-made heaps: whole ones, and damaged ones.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::image::Image;
use super::walk::{Block, Heap, Sum, read};

const LIBRARY: u64 = 0x7000_0000_0000;
const ARENA: u64 = LIBRARY + 0x100;
const COUNTS: u64 = LIBRARY + 0x2000;
const HEAP: u64 = 0x5000_0000_0000;
const HEAP_SIZE: u64 = 0x4000;
const THREAD: u64 = 0x7100_0000_2000;

/// The words of a process's memory.
#[derive(Clone)]
struct Words(BTreeMap<u64, u64>);

impl Words {
    fn set(&mut self, address: u64, word: u64) {
        self.0.insert(address, word);
    }

    /// Writes a chunk's size, and the flag that the chunk before it is used.
    fn chunk(&mut self, address: u64, size: u64, is_previous_used: bool) {
        self.set(address + 8, size | u64::from(is_previous_used));
    }

    fn image(&self) -> Image {
        let mut image = Image {
            library: std::iter::once(LIBRARY..LIBRARY + 0x3000).collect(),
            heap: Some(HEAP..HEAP + HEAP_SIZE),
            thread_pointers: vec![THREAD],
            ..Image::default()
        };
        for (start, length) in [(LIBRARY, 0x3000), (HEAP, HEAP_SIZE), (THREAD - 0x1000, 0x1000)] {
            let words = (start..start + length).step_by(8);
            let bytes = words.flat_map(|at| self.0.get(&at).copied().unwrap_or(0).to_le_bytes());
            image.areas.add(start, bytes.collect());
        }
        image
    }
}

/// The chunks of the heap below, in their order.
const CACHE: u64 = HEAP;
const USED: u64 = CACHE + 0x290;
const FREE: u64 = USED + 0x40;
const FAST: u64 = FREE + 0x500;
const FAST_TOO: u64 = FAST + 0x30;
const CACHED: u64 = FAST_TOO + 0x30;
const LAST: u64 = CACHED + 0x20;
const TOP: u64 = LAST + 0x1010;

/// Makes a main arena with a chunk of each kind. `is_mangled` lists have links that are combined
/// with their own addresses.
fn process(is_mangled: bool) -> Words {
    let link = |at: u64, next: u64| if is_mangled { next ^ (at >> 12) } else { next };
    let mut words = Words(BTreeMap::new());
    for number in 0..127 {
        let bin = ARENA + 96 + 16 * number;
        words.set(bin + 16, bin);
        words.set(bin + 24, bin);
    }
    words.set(ARENA + 96, TOP);
    words.set(ARENA + 2160, ARENA);
    words.set(ARENA + 2184, HEAP_SIZE);
    words.set(ARENA + 2192, HEAP_SIZE);
    // The chunk between others is unsorted.
    let unsorted = ARENA + 96;
    words.set(unsorted + 16, FREE);
    words.set(unsorted + 24, FREE);
    words.set(FREE + 16, unsorted);
    words.set(FREE + 24, unsorted);
    // Fast bins of 0x30 bytes.
    words.set(ARENA + 16 + 8, FAST_TOO);
    words.set(FAST_TOO + 16, link(FAST_TOO + 16, FAST));
    words.set(FAST + 16, link(FAST + 16, 0));
    // A cache with one chunk of 0x20 bytes.
    words.set(THREAD - 72, CACHE + 16);
    words.set(CACHE + 16, 1);
    words.set(CACHE + 16 + 128, CACHED + 16);
    words.set(CACHED + 16, link(CACHED + 16, 0));
    // The counts of mapped chunks: none, at most 65,536, one so far.
    words.set(COUNTS - 32, 65_536 | 1 << 32);
    words.set(COUNTS - 8, 0x2000);
    words.set(COUNTS, HEAP);
    for (chunk, next, is_previous_used) in [
        (CACHE, USED, true),
        (USED, FREE, true),
        (FREE, FAST, true),
        (FAST, FAST_TOO, false),
        (FAST_TOO, CACHED, true),
        (CACHED, LAST, true),
        (LAST, TOP, true),
        (TOP, HEAP + HEAP_SIZE, true),
    ] {
        words.chunk(chunk, next - chunk, is_previous_used);
    }
    words
}

fn sum(blocks: u64, bytes: u64) -> Sum {
    Sum { blocks, bytes }
}

#[test]
fn each_chunk_is_what_it_is() {
    for is_mangled in [false, true] {
        let heap = read(&process(is_mangled).image()).expect("there is an arena");
        let expected = Heap {
            blocks: vec![
                Block { address: USED + 16, usable: 0x38 },
                Block { address: LAST + 16, usable: 0x1008 },
            ],
            used: sum(2, 0x1040),
            headers: 16,
            cached: sum(1, 0x20),
            fast: sum(2, 0x60),
            free: sum(1, 0x500),
            free_sizes: vec![0x500],
            top: HEAP + HEAP_SIZE - TOP,
            bookkeeping: 0x290,
            arenas: 1,
            ..Heap::default()
        };
        assert_eq!(heap, expected, "mangled: {is_mangled}");
    }
}

#[test]
fn what_is_damaged_is_left_out_and_named() {
    let mut words = process(true);
    words.chunk(LAST, 0x1018, true);
    let heap = read(&words.image()).expect("there is an arena");
    assert_eq!((heap.used, heap.top), (sum(1, 0x38), 0));
    assert_eq!(heap.unknown, HEAP + HEAP_SIZE - LAST);
    assert!(heap.notes[0].contains(&format!("the chunk at {LAST:x} is damaged")), "{heap:?}");

    // glibc counts a mapped chunk that is not there.
    let mut words = process(true);
    words.set(COUNTS - 40, 1 << 32);
    words.set(COUNTS - 16, 0x2000);
    let heap = read(&words.image()).expect("there is an arena");
    assert_eq!(heap.unknown, 0x2000);
    assert!(heap.notes[0].contains("0 bytes in 0 were found"), "{heap:?}");

    // A thread in the midst of taking a chunk from its cache.
    let mut words = process(true);
    words.set(CACHE + 16, 2);
    let heap = read(&words.image()).expect("there is an arena");
    assert_eq!((heap.cached, heap.used.blocks), (sum(0, 0), 3 + 1));
    assert!(heap.notes[0].contains("the caches of 1 threads are damaged"), "{heap:?}");

    // Without a bin there is no arena.
    let mut words = process(true);
    words.set(ARENA + 96 + 16 * 50 + 16, HEAP);
    assert_eq!(read(&words.image()), None);
    assert_eq!(read(&Image::default()), None);
}

proptest! {
    #[test]
    fn hostile_memory_ends_every_walk(
        changes in prop::collection::vec((0..400_usize, any::<u64>(), 0..5_u8), 1..8),
        is_mangled: bool,
    ) {
        let mut words = process(is_mangled);
        let places: Vec<u64> = words.0.keys().copied().collect();
        for (place, random, kind) in changes {
            let place = places[place % places.len()];
            let target = places[usize::try_from(random % 400).expect("small") % places.len()];
            words.set(place, match kind {
                0 => random,
                1 => target,
                2 => target - 16,
                3 => words.0[&place] ^ 1 << (random % 64),
                _ => u64::MAX - random % 64,
            });
        }
        if let Some(heap) = read(&words.image()) {
            // No chunk is counted twice.
            let found = heap.used.bytes + heap.headers + heap.cached.bytes + heap.fast.bytes
                + heap.free.bytes + heap.top;
            prop_assert!(found <= HEAP_SIZE, "{heap:?}");
        }
    }
}

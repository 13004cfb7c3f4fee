//! Sorts the memory of a process by what it may hold of a heap.

use std::ops::Range;

use crate::glibc_heap::image::ARENA_ALIGN;

/// Ranges of memory, by what they may hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// The data of the C library.
    pub(super) library: Vec<Range<u64>>,
    /// Heaps of arenas.
    pub(super) arena_heaps: Vec<Range<u64>>,
    /// Memory without a file, where mapped chunks may be.
    pub(super) private: Vec<Range<u64>>,
}

/// The distances of an arena's state from the start of its first heap (`heap_info`): up to glibc
/// 2.34, and since 2.35.
const STATE_PLACES: [u64; 2] = [0x20, 0x30];

impl Places {
    /// Adds data of the C library.
    pub(super) fn add_library(&mut self, range: Range<u64>) {
        self.library.push(range);
    }

    /// Adds pages of zeros behind the C library's data. The kernel may have joined them with
    /// mapped chunks.
    pub(super) fn add_zeros(&mut self, range: Range<u64>) {
        self.library.push(range.clone());
        self.private.push(range);
    }

    /// Adds memory without a file. Heaps of arenas begin at multiples of 64 MiB, with the address
    /// of their arena's state; the kernel may have joined them with what is before.
    pub(super) fn add_private(&mut self, range: Range<u64>, word: impl Fn(u64) -> Option<u64>) {
        let begins_heap = |at: &u64| {
            let state = word(*at).unwrap_or(0);
            state > ARENA_ALIGN && STATE_PLACES.contains(&(state % ARENA_ALIGN))
        };
        let mut start = range.start;
        let first = range.start.next_multiple_of(ARENA_ALIGN);
        let step = usize::try_from(ARENA_ALIGN).unwrap_or(usize::MAX);
        for heap in (first..range.end).step_by(step).filter(begins_heap) {
            if start < heap {
                self.private.push(start..heap);
            }
            let end = range.end.min(heap + ARENA_ALIGN);
            self.arena_heaps.push(heap..end);
            start = end;
        }
        if start < range.end {
            self.private.push(start..range.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    #[test]
    fn heaps_of_arenas_are_told_from_other_memory() {
        let state = 1024 * M + 0x30;
        let sorted = |range: Range<u64>, heaps: &[u64]| {
            let starts_and_ends = |ranges: Vec<Range<u64>>| {
                ranges.into_iter().map(|range| (range.start / M, range.end / M)).collect::<Vec<_>>()
            };
            let mut places = Places::default();
            let word = |at: u64| Some(if heaps.contains(&at) { state } else { 7 });
            places.add_private(range, word);
            (starts_and_ends(places.arena_heaps), starts_and_ends(places.private))
        };
        assert_eq!(sorted(1000 * M..1200 * M, &[]), (vec![], vec![(1000, 1200)]));
        let two = (vec![(1024, 1088), (1152, 1200)], vec![(1000, 1024), (1088, 1152)]);
        assert_eq!(sorted(1000 * M..1200 * M, &[1024 * M, 1152 * M]), two);
        let alone = (vec![(1024, 1025)], vec![]);
        assert_eq!(sorted(1024 * M..1025 * M, &[1024 * M]), alone);
        let mut places = Places::default();
        places.add_private(0..64 * M, |_| None);
        places.add_zeros(8..16);
        assert_eq!(places.private, [0..64 * M, 8..16]);
        assert_eq!(places.library.len(), 1);
    }
}

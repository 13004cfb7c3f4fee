//! Reads this process's memory word by word, as possible pointers.

use std::ops::Range;

use crate::mem::sys;

/// The size of a word in bytes.
const WORD: usize = size_of::<usize>();

/// The most words of a batch.
const BATCH_WORDS: usize = 1024;

/// Calls `visit` with the address and the value of each aligned word from `low` to `high`, but for
/// those whose value is no address because it lies in the first page.
///
/// Most words of statics are zero: without optimisation, a look-up of each would be most of a
/// collection's time. The kernel does the reading, so pages that are not mapped are skipped.
pub(super) fn each_word(low: usize, high: usize, mut visit: impl FnMut(usize, usize)) {
    let mut words = [0; 512];
    let mut address = low.next_multiple_of(WORD);
    while address + WORD <= high {
        let length = ((high - address) / WORD).min(words.len());
        let read = sys::read_words_checked(address, &mut words[..length]);
        for (word, number) in words[..read].iter().zip(0..) {
            if *word >= sys::PAGE {
                visit(address + number * WORD, *word);
            }
        }
        address += read * WORD;
        if read < length {
            // The rest of this page is not mapped.
            address = (address + 1).next_multiple_of(sys::PAGE);
        }
    }
}

/// The words of several short pieces of memory, which the kernel copies at once: a call costs more
/// than most copies.
pub(super) struct WordBatch {
    words: [usize; BATCH_WORDS],
    ranges: [Range<usize>; sys::MAX_RANGES],
}

impl WordBatch {
    pub(super) const fn new() -> Self {
        WordBatch { words: [0; BATCH_WORDS], ranges: [const { 0..0 }; sys::MAX_RANGES] }
    }

    /// Reads the first of these pieces, each with its start and bytes, and returns how many were
    /// read. It is 0 if the first is too long for a batch, or cannot be read.
    pub(super) fn read(&mut self, pieces: impl Iterator<Item = (usize, usize)>) -> usize {
        let (mut count, mut words) = (0, 0);
        for (range, (start, bytes)) in self.ranges.iter_mut().zip(pieces) {
            let length = bytes / WORD;
            if words + length > BATCH_WORDS {
                break;
            }
            *range = start..start + length * WORD;
            words += length;
            count += 1;
        }
        let mut left = sys::read_ranges_checked(&self.ranges[..count], &mut self.words[..words]);
        for (index, range) in self.ranges[..count].iter().enumerate() {
            let Some(rest) = left.checked_sub(range.len() / WORD) else { return index };
            left = rest;
        }
        count
    }

    /// Returns the words of a piece that was read.
    pub(super) fn words(&self, index: usize) -> &[usize] {
        let before: usize = self.ranges[..index].iter().map(|range| range.len() / WORD).sum();
        &self.words[before..before + self.ranges[index].len() / WORD]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pieces_are_read_at_once() {
        let values: [usize; 2000] = std::array::from_fn(|index| index * 3);
        let low = values.as_ptr().addr();
        let mut batch = WordBatch::new();
        let pieces = [(low, 24), (low + 80, 8 * 900 + 7), (low, 0), (low + 8, 800)];
        assert_eq!(batch.read(pieces.iter().copied()), 4);
        for (index, (start, bytes)) in pieces.into_iter().enumerate() {
            let first = (start - low) / 8;
            assert_eq!(batch.words(index), &values[first..first + bytes / 8], "{index}");
        }
        // The second is too long for this batch; the first is too long for any. One cannot be read.
        assert_eq!(batch.read([(low, 8), (low, 8 * 1024)].into_iter()), 1);
        assert_eq!(batch.read([(low, 8 * 1025), (low, 8)].into_iter()), 0);
        assert_eq!(batch.read([(low, 8), (low, 80), (8, 8), (low, 8)].into_iter()), 2);
        assert_eq!(batch.read([(8, 8), (low, 8)].into_iter()), 0);
        assert_eq!(batch.read(std::iter::repeat((low, 8))), sys::MAX_RANGES);
    }

    #[test]
    fn mapped_words_that_may_be_addresses_are_visited() {
        let values = [sys::PAGE, 0, sys::PAGE - 1, sys::PAGE, usize::MAX];
        let low = values.as_ptr().addr();
        let mut seen = Vec::new();
        each_word(low, low + size_of_val(&values), |at, word| seen.push((at - low, word)));
        assert_eq!(seen, [(0, sys::PAGE), (24, sys::PAGE), (32, usize::MAX)]);
        // The first page of an address space is never mapped.
        each_word(8, 4096, |at, word| panic!("{word} at {at}"));
    }
}

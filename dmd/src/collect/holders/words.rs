//! Reads this process's memory word by word, as possible pointers.

use crate::mem::sys;

/// Calls `visit` with the address and the value of each aligned word from `low` to `high`.
///
/// The kernel does the reading, so pages that are not mapped are skipped.
pub(super) fn each_word(low: usize, high: usize, mut visit: impl FnMut(usize, usize)) {
    const WORD: usize = size_of::<usize>();
    let mut words = [0; 512];
    let mut address = low.next_multiple_of(WORD);
    while address + WORD <= high {
        let length = ((high - address) / WORD).min(words.len());
        let read = sys::read_words_checked(address, &mut words[..length]);
        for (word, number) in words[..read].iter().zip(0..) {
            visit(address + number * WORD, *word);
        }
        address += read * WORD;
        if read < length {
            // The rest of this page is not mapped.
            address = (address + 1).next_multiple_of(sys::PAGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_words_are_visited() {
        let values = [1_usize, 2, 3];
        let low = values.as_ptr().addr();
        let mut seen = Vec::new();
        each_word(low, low + size_of_val(&values), |at, word| seen.push((at - low, word)));
        assert_eq!(seen, [(0, 1), (8, 2), (16, 3)]);
        // The first page of an address space is never mapped.
        each_word(8, 4096, |at, word| panic!("{word} at {at}"));
    }
}

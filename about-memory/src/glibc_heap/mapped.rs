//! Finds chunks that are mappings of their own.

use std::ops::Range;

use super::image::{FLAGS, MAPPED, MAPPED_HEADER, PAGE};

/// The bytes after which a range is no longer searched, if no chunk ends there.
const SEARCHED: u64 = 1 << 20;

/// Finds the mapped chunks in a range without a file, given a function that reads a word. The
/// kernel joins neighbouring mappings, so that one chunk may follow another.
pub(super) fn find_mapped(
    range: Range<u64>,
    word: impl Fn(u64) -> Option<u64>,
    found: &mut Vec<(u64, u64)>,
) {
    let mut place = range.start;
    let mut search_end = range.end.min(range.start.saturating_add(SEARCHED));
    while place < search_end {
        let (Some(before), Some(size)) = (word(place), word(place + 8)) else { return };
        let bytes = size & !FLAGS;
        let is_chunk = before == 0
            && size & FLAGS == MAPPED
            && bytes > MAPPED_HEADER
            && bytes.is_multiple_of(PAGE)
            && bytes <= range.end - place;
        if is_chunk {
            found.push((place, bytes));
            search_end = range.end.min((place + bytes).saturating_add(SEARCHED));
        }
        place += if is_chunk { bytes } else { PAGE };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_each_other_or_other_pages() {
        let words = [(0x1008, 0x2002), (0x3008, 0x1002), (0x5008, 0x3002), (0x9008, 0x9_9002)];
        let word = |at: u64| {
            let known = words.iter().find(|(place, _)| *place == at).map_or(0, |(_, word)| *word);
            (at < 0xa000).then_some(known)
        };
        let mut found = Vec::new();
        find_mapped(0x1000..0xa000, word, &mut found);
        // The last one is larger than the range.
        assert_eq!(found, [(0x1000, 0x2000), (0x3000, 0x1000), (0x5000, 0x3000)]);
        found.clear();
        find_mapped(0x1000..0xa000, |_| None, &mut found);
        find_mapped(0..u64::MAX, |_| Some(0), &mut found);
        assert!(found.is_empty());
    }
}

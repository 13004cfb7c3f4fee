//! Finds chunks that are mappings of their own.

use std::ops::Range;

use super::image::{FLAGS, MAPPED, MAPPED_HEADER, PAGE};

/// The extent of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// A few pages, from its start and from the end of each chunk on.
    #[cfg_attr(
        not(all(target_os = "linux", target_arch = "x86_64")),
        allow(dead_code, reason = "for running processes")
    )]
    Near,
    /// To its end: the kernel may have joined a chunk with a thread's stack.
    Whole,
}

/// The bytes of a near search.
const NEAR: u64 = 64 << 10;

/// Finds the mapped chunks in a range without a file, given a function that reads two words. The
/// kernel joins neighbouring mappings, so that one chunk may follow another.
pub(super) fn find_mapped(
    range: Range<u64>,
    search: Search,
    words: impl Fn(u64) -> Option<[u64; 2]>,
    found: &mut Vec<(u64, u64)>,
) {
    let end_of_search = |from: u64| match search {
        Search::Near => range.end.min(from.saturating_add(NEAR)),
        Search::Whole => range.end,
    };
    let mut place = range.start;
    let mut search_end = end_of_search(place);
    while place < search_end {
        let Some([before, size]) = words(place) else { return };
        let bytes = size & !FLAGS;
        let is_chunk = before == 0
            && size & FLAGS == MAPPED
            && bytes > MAPPED_HEADER
            && bytes.is_multiple_of(PAGE)
            && bytes <= range.end - place;
        if is_chunk {
            found.push((place, bytes));
            search_end = end_of_search(place + bytes);
        }
        place += if is_chunk { bytes } else { PAGE };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_each_other_or_other_pages() {
        let sizes = [(0x1000, 0x2002), (0x3000, 0x1002), (0x5000, 0x3002), (0x9000, 0x9_9002)];
        let far = (0x10_0000, 0x1002);
        let words = |at: u64| {
            let known = sizes.iter().chain([&far]).find(|(place, _)| *place == at);
            Some([0, known.map_or(0, |(_, word)| *word)])
        };
        let find = |range: Range<u64>, search| {
            let mut found = Vec::new();
            find_mapped(range, search, words, &mut found);
            found
        };
        let near = [(0x1000, 0x2000), (0x3000, 0x1000), (0x5000, 0x3000)];
        // The chunk at 9000 is larger than the range.
        assert_eq!(find(0x1000..0xa000, Search::Near), near);
        assert_eq!(find(0x1000..0x11_0000, Search::Near)[..3], near);
        assert_eq!(find(0xb000..0x11_0000, Search::Near), []);
        assert_eq!(find(0xb000..0x11_0000, Search::Whole), [(0x10_0000, 0x1000)]);
        let mut found = Vec::new();
        find_mapped(0x1000..0xa000, Search::Whole, |_| None, &mut found);
        assert!(found.is_empty());
    }
}

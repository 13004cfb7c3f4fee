//! A lock-free array that grows and never moves: each segment is as long as all before it together,
//! plus one first segment.

use super::lazy_slice::{LazySlice, Zeroed};
use super::sync::{array_of, const_fn};

/// The length of the first segment: a page of words.
const FIRST: usize = if cfg!(loom) {
    4
} else if cfg!(miri) {
    // Miri visits every place of a segment at each access.
    16
} else {
    512
};
const SEGMENTS: usize = if cfg!(loom) { 2 } else { 24 };

/// A growing array of elements that begin as zeros. Elements never move, so references are
/// `'static`.
pub(crate) struct ConcurrentVec<T> {
    segments: [LazySlice<T>; SEGMENTS],
}

impl<T: Zeroed + Sync> ConcurrentVec<T> {
    const_fn! {
        pub(crate) fn new() -> Self {
            ConcurrentVec { segments: array_of!(LazySlice::new(); SEGMENTS) }
        }
    }

    /// Returns the element, if its segment is mapped.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&'static T> {
        let Position { segment, length, offset } = position(index);
        self.segments.get(segment)?.get(length)?.get(offset)
    }

    /// Returns the element, and maps its segment if necessary. Returns `None` when memory is short.
    #[inline]
    pub(crate) fn get_or_alloc(&self, index: usize) -> Option<&'static T> {
        let Position { segment, length, offset } = position(index);
        self.segments.get(segment)?.get_or_alloc(length)?.get(offset)
    }

    /// Returns the element and those that follow in its segment, as
    /// [`get_or_alloc`](Self::get_or_alloc) does.
    #[inline]
    pub(crate) fn get_or_alloc_from(&self, index: usize) -> Option<&'static [T]> {
        let Position { segment, length, offset } = position(index);
        self.segments.get(segment)?.get_or_alloc(length)?.get(offset..)
    }
}

/// The position of an element.
#[derive(Debug, PartialEq, Eq)]
struct Position {
    segment: usize,
    /// The length of the segment.
    length: usize,
    /// The index in the segment.
    offset: usize,
}

#[inline]
fn position(index: usize) -> Position {
    let segment = ((index / FIRST) + 1).ilog2() as usize;
    let length = FIRST << segment;
    Position { segment, length, offset: index + FIRST - length }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_place_of_its_own() {
        let table = [
            (0, (0, 512, 0)),
            (511, (0, 512, 511)),
            (512, (1, 1024, 0)),
            (1535, (1, 1024, 1023)),
            (1536, (2, 2048, 0)),
        ];
        for (index, (segment, length, offset)) in table {
            assert_eq!(position(index), Position { segment, length, offset }, "{index}");
        }
    }
}

//! An array that grows and never moves: each segment holds as much as all before it.

use super::pages::{Lazy, Zeroed};
use super::sync::{array_of, const_fn};

/// The elements of the first segment: a page of words.
const FIRST: usize = if cfg!(loom) { 4 } else { 512 };
const SEGMENTS: usize = if cfg!(loom) { 2 } else { 24 };

/// Elements that begin as zeros, and stay where they are.
pub(crate) struct ConcurrentVec<T> {
    segments: [Lazy<T>; SEGMENTS],
}

impl<T: Zeroed> ConcurrentVec<T> {
    const_fn! {
        pub(crate) fn new() -> Self {
            ConcurrentVec { segments: array_of!(Lazy::new(); SEGMENTS) }
        }
    }

    /// The element, if its segment was made.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&'static T> {
        let (segment, length, offset) = split(index);
        self.segments.get(segment)?.get(length)?.get(offset)
    }

    /// The element; its segment is made if need be. `None` when memory is short.
    #[inline]
    pub(crate) fn get_or_make(&self, index: usize) -> Option<&'static T> {
        let (segment, length, offset) = split(index);
        self.segments.get(segment)?.get_or_make(length)?.get(offset)
    }
}

/// Which segment, how long it is, and where in it.
#[inline]
fn split(index: usize) -> (usize, usize, usize) {
    let segment = ((index / FIRST) + 1).ilog2() as usize;
    let length = FIRST << segment;
    (segment, length, index + FIRST - length)
}

#[cfg(all(test, not(loom)))]
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
        for (index, place) in table {
            assert_eq!(split(index), place, "{index}");
        }
    }
}

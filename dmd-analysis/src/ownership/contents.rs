//! Equal contents: the blocks of a row that are copies of another.

use std::hash::{DefaultHasher, Hasher};

use rustc_hash::FxHashSet;

use super::layout::Layout;
use super::layout::words::Words;
use super::shape::{Role, Shapes};

/// The contents of blocks by row.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// There may be one for each block of the heap.
    seen: FxHashSet<u128>,
}

impl Contents {
    /// Returns whether a block of a row is a copy of one before it; `None` if its contents cannot
    /// be compared: they have pointers, or the dump does not have all of them.
    pub(super) fn is_copy(
        &mut self,
        row: usize,
        layout: Layout,
        words: Words<'_>,
        shapes: &mut Shapes<'_>,
    ) -> Option<bool> {
        let Layout::Elements { of, at, head: 0, length: Some(length) } = layout else {
            return None;
        };
        if !shapes.of(of, Role::Value).is_empty() {
            return None;
        }
        let bytes = length.checked_mul(shapes.types.get(of).size)?;
        let end = at.checked_add(bytes)?;
        if bytes == 0 || at % 8 != 0 || end > words.bytes() {
            return None;
        }
        let all = (at..end).step_by(8);
        let all = all.map(|offset| words.number(offset, (end - offset).min(8)).unwrap_or(0));
        Some(!self.seen.insert(fingerprint(row, bytes, all)))
    }
}

/// Returns a hash of 128 bits: nothing else tells copies from other contents. Faster hashes have
/// collisions in real data: those of `[1.0, 2.0]` and `[-1.0, -2.0]` are equal if a hash only adds
/// and multiplies.
fn fingerprint(row: usize, bytes: u64, words: impl Iterator<Item = u64>) -> u128 {
    let mut halves = [0_u8, 1].map(|half| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(half);
        hasher.write_usize(row);
        hasher.write_u64(bytes);
        hasher
    });
    for word in words {
        halves.iter_mut().for_each(|hasher| hasher.write_u64(word));
    }
    let [first, second] = halves.map(|hasher| u128::from(hasher.finish()));
    first << 64 | second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_in_signs_alone_are_no_copies() {
        let of = |numbers: [f64; 2]| fingerprint(0, 16, numbers.map(f64::to_bits).into_iter());
        assert_eq!(of([1.0, 2.0]), of([1.0, 2.0]));
        assert_ne!(of([1.0, 2.0]), of([-1.0, -2.0]));
        assert_ne!(of([1.0, 2.0]), of([2.0, 1.0]));
    }
}

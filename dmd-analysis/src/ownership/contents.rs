//! Equal contents: the blocks of a row that are copies of another.

use std::hash::Hasher;

use rustc_hash::{FxHashSet, FxHasher};

use super::layout::{Layout, Words};
use super::shape::{Role, Shapes};

/// The contents of blocks by row.
#[derive(Debug, Default)]
pub(super) struct Contents {
    seen: FxHashSet<(usize, u64, u64, u64)>,
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
        if bytes == 0 || at % 8 != 0 || end > words.0.len() as u64 * 8 {
            return None;
        }
        let [first, second] = [0, 0x9e37_79b9_7f4a_7c15].map(|seed| {
            let mut hasher = FxHasher::default();
            hasher.write_u64(seed);
            for offset in (at..end).step_by(8) {
                hasher.write_u64(words.number(offset, (end - offset).min(8)).unwrap_or(0));
            }
            hasher.finish()
        });
        Some(!self.seen.insert((row, bytes, first, second)))
    }
}

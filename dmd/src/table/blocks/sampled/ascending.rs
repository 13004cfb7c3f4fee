//! The entries of blocks in ascending order of addresses, without memory of the heap.
//!
//! A pass over the table takes the entries of the lowest addresses that do not lie behind, as many
//! as fit into a batch.

use super::entry::Entry;
use super::levels::Levels;

/// The entries of a batch: 8 KiB of stack. At least half of them are taken by each pass.
const BATCH: usize = if cfg!(test) { 16 } else { 512 };

/// An iterator over the entries of blocks, in ascending order of addresses.
pub(super) struct Ascending<'l> {
    levels: &'l Levels,
    /// The least address of the next batch; `None` if there is no next one.
    from: Option<usize>,
    /// Invariant: the first `length` are there, and in order.
    batch: [Option<Entry>; BATCH],
    length: usize,
    /// The index of the next entry.
    next: usize,
}

impl Levels {
    pub(super) fn ascending(&self) -> Ascending<'_> {
        Ascending { levels: self, from: Some(0), batch: [None; BATCH], length: 0, next: 0 }
    }
}

fn address(entry: Option<Entry>) -> Option<usize> {
    entry?.name().block_address()
}

impl Ascending<'_> {
    /// Takes the next batch.
    fn fill(&mut self, from: usize) {
        (self.length, self.next, self.from) = (0, 0, None);
        let mut limit = usize::MAX;
        for entry in self.levels.entries() {
            let Some(start) = entry.name().block_address() else { continue };
            if self.length == BATCH {
                self.sort();
                self.length = BATCH / 2;
                limit = address(self.batch[self.length - 1]).unwrap_or(limit);
                self.from = Some(limit + 1);
            }
            if (from..=limit).contains(&start) {
                self.batch[self.length] = Some(entry);
                self.length += 1;
            }
        }
        self.sort();
    }

    fn sort(&mut self) {
        self.batch[..self.length].sort_unstable_by_key(|entry| address(*entry));
    }
}

impl Iterator for Ascending<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        while self.next == self.length {
            let from = self.from?;
            self.fill(from);
        }
        let entry = self.batch[self.next];
        self.next += 1;
        entry
    }
}

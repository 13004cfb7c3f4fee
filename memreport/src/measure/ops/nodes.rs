//! Nodes that several values share, as versions of a persistent collection do: each is counted by one of them, with the elements in it.

use alloc::collections::BTreeMap;
use core::ops::Range;

use super::Ops;
use super::find::find;
use crate::allocator::size_source::SizeSource;

/// The nodes of one value.
pub(crate) struct Nodes<'o, 'a> {
    ops: &'o Ops<'a>,
    /// For each block by its start, whether its contents are measured here.
    known: BTreeMap<usize, bool>,
    /// The block that was met last, mostly also the next.
    last: (Range<usize>, bool),
}

impl<'o, 'a> Nodes<'o, 'a> {
    pub(crate) fn new(ops: &'o Ops<'a>) -> Self {
        Self { ops, known: BTreeMap::new(), last: (0..0, false) }
    }

    /// The nodes that these words lead to, if `is_node` knows them by the word's offset and by the size that was asked for. Says how many
    /// words did.
    pub(crate) fn lead_to(
        &mut self,
        words: impl Iterator<Item = usize>,
        is_node: impl Fn(usize, usize) -> bool,
    ) -> usize {
        let SizeSource::Table(tracker) = self.ops.collection.sizes else { return 0 };
        let mut count = 0;
        for word in words {
            let block = find(tracker, word);
            if block.is_some_and(|block| is_node(word - block.start, block.requested)) {
                self.meet(word, 0);
                count += 1;
            }
        }
        count
    }

    /// The node that has an element at `inside`, which without a tracker counts as so many bytes. Says whether the element is to be
    /// measured here.
    pub(crate) fn meet(&mut self, inside: usize, otherwise: usize) -> bool {
        if self.last.0.contains(&inside) {
            return self.last.1;
        }
        let pointer = core::ptr::without_provenance::<u8>(inside);
        let block = match self.ops.collection.sizes {
            SizeSource::Table(tracker) => find(tracker, inside),
            SizeSource::Layout | SizeSource::Allocator(_) => None,
        };
        let Some(block) = block else {
            return self.ops.shared_enclosing_block(pointer, otherwise, usize::MAX);
        };
        let counts = || self.ops.shared_enclosing_block(pointer, otherwise, usize::MAX);
        let is_here = *self.known.entry(block.start).or_insert_with(counts);
        self.last = (block.start..block.start + block.usable, is_here);
        is_here
    }
}

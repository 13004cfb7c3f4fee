//! Counts nodes that several values share, such as versions of a persistent collection. One of them
//! counts the node, with its elements.

use alloc::collections::BTreeMap;
use core::ops::Range;

use super::Ops;
use super::find::find;
use crate::allocator::size_source::SizeSource;

/// The nodes of one value.
pub(crate) struct Nodes<'o, 'a> {
    ops: &'o Ops<'a>,
    /// True for a block whose contents are measured here, by its start.
    known: BTreeMap<usize, bool>,
    /// The last block and its answer: mostly also the next one.
    last: (Range<usize>, bool),
}

impl<'o, 'a> Nodes<'o, 'a> {
    pub(crate) fn new(ops: &'o Ops<'a>) -> Self {
        Self { ops, known: BTreeMap::new(), last: (0..0, false) }
    }

    /// Adds the nodes that these words point into, and returns the number of such words.
    ///
    /// `is_node` recognizes a node by the word's offset in it and by its requested size in bytes.
    pub(crate) fn add_nodes_at(
        &mut self,
        words: impl Iterator<Item = usize>,
        is_node: impl Fn(usize, usize) -> bool,
    ) -> usize {
        let SizeSource::Table(tracker) = self.ops.collection.sizes else { return 0 };
        let mut count = 0;
        for word in words {
            let block = find(tracker, word);
            if block.is_some_and(|block| is_node(word - block.start, block.requested)) {
                self.visit(word, 0);
                count += 1;
            }
        }
        count
    }

    /// Adds the node that contains the element at `inside`. Returns whether to measure the element
    /// here.
    ///
    /// Without a tracker, the node counts as `otherwise` computed bytes.
    pub(crate) fn visit(&mut self, inside: usize, otherwise: usize) -> bool {
        if self.last.0.contains(&inside) {
            return self.last.1;
        }
        let pointer = core::ptr::without_provenance::<u8>(inside);
        let block = match self.ops.collection.sizes {
            SizeSource::Table(tracker) => find(tracker, inside),
            SizeSource::Layout | SizeSource::Allocator(_) | SizeSource::Function(_) => None,
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

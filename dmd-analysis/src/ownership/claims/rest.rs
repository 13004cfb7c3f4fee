//! Follows the pointers of what no root reaches, and words that only may be pointers.

use crate::analysis::AddressPlace;
use crate::retention::graph::Builder;
use crate::retention::graph::cycles::loose_cycles;
use crate::retention::graph::nodes::{NodeSet, Numbering};

use super::Claims;
use crate::ownership::roots::Roots;
use crate::ownership::shape::{LabelId, Strength};

/// The bits of an address of a program.
const ADDRESS_BITS: u32 = 48;

impl Claims<'_, '_, '_> {
    /// Follows tagged words to the blocks that nothing else reaches. Begins at this place in the
    /// order of blocks.
    pub(super) fn follow_tagged(&mut self, first: AddressPlace) {
        let mut place = first;
        while let Some(block) = self.order.next(&mut place) {
            for to in self.tagged(block) {
                if !self.paths.is_reached(to) {
                    self.record(block, to, (Strength::Word, LabelId::WORD), None);
                }
            }
            self.run();
        }
    }

    /// Returns the blocks that tagged words of a block lead to: the highest 16 bits are not of an
    /// address, because interpreters keep the type of a value there.
    fn tagged(&self, block: u32) -> Vec<u32> {
        let mut found = Vec::new();
        self.ranges.each_piece_of(block, |_, words| {
            let addresses = words
                .iter()
                .filter(|word| **word >> ADDRESS_BITS != 0)
                .map(|word| word & ((1 << ADDRESS_BITS) - 1));
            let blocks = addresses.filter_map(|address| self.ranges.block_at(address));
            found.extend(blocks.filter(|at| at.offset == 0).map(|at| at.block));
        });
        found
    }

    /// Follows the pointers of the blocks that no root reaches: first of those that nothing points
    /// at, then of cycles.
    pub(super) fn follow_heads(&mut self, roots: &Roots<'_>) {
        let mut left = NodeSet::new(self.dump.blocks.len());
        let blocks = (0..).take(self.dump.blocks.len());
        blocks.filter(|&block| !self.paths.is_reached(block)).for_each(|block| {
            left.insert(block);
        });
        let left = Numbering::new(left);
        if left.len() == 0 {
            return;
        }
        let blocks = left.nodes();
        let mut is_held = vec![false; blocks.len()];
        let mut builder = Builder::default();
        for (&block, from) in blocks.iter().zip(0..) {
            let mut add = |to: u32| {
                if let Some(to) = left.get(to).filter(|to| *to != from) {
                    is_held[to as usize] = true;
                    builder.add(from, to);
                }
            };
            self.ranges.each_link_of(block, |link| add(link.to));
            self.tagged(block).into_iter().for_each(add);
        }
        let heads = blocks.iter().zip(&is_held).filter(|(_, is_held)| !**is_held);
        self.begin_at(heads.map(|(block, _)| *block).collect(), roots);
        let reached = blocks.iter().map(|&block| self.paths.is_reached(block));
        let cycles = loose_cycles(&builder.finish(blocks.len()), &reached.collect::<Vec<_>>());
        let first = cycles.iter().filter_map(|cycle| cycle.first().copied());
        self.begin_at(first.map(|number| blocks[number as usize]).collect(), roots);
    }

    fn begin_at(&mut self, heads: Vec<u32>, roots: &Roots<'_>) {
        for &head in &heads {
            self.record(roots.external, head, (Strength::Word, LabelId::WORD), None);
        }
        self.heads.extend(heads);
        let first = self.order.end();
        self.run();
        self.follow_tagged(first);
    }
}

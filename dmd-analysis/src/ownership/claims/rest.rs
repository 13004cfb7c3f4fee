//! Follows the pointers of what no root reaches, and words that only may be pointers.

use crate::retention::NONE;
use crate::retention::graph::Builder;
use crate::retention::graph::cycles::loose_cycles;

use super::Claims;
use crate::ownership::roots::Roots;
use crate::ownership::shape::{LabelId, Strength};

/// The bits of an address of a program.
const ADDRESS_BITS: u32 = 48;

impl Claims<'_, '_, '_> {
    /// Follows tagged words to the blocks that nothing else reaches. Begins at this place in the
    /// order of blocks.
    pub(super) fn follow_tagged(&mut self, first: usize) {
        let mut next = first;
        while let Some(&block) = self.order.get(next) {
            next += 1;
            for to in self.tagged(block) {
                if self.reached_from[to as usize] == NONE {
                    self.push(block, to, (Strength::Word, LabelId::WORD), None);
                }
            }
            self.run();
        }
    }

    /// Returns the blocks that tagged words of a block lead to: the highest 16 bits are not of an
    /// address, because interpreters keep the type of a value there.
    fn tagged(&self, block: u32) -> Vec<u32> {
        let mut buffer = Vec::new();
        let words = self.ranges.words_of(block, &mut buffer).iter();
        let addresses = words
            .filter(|word| **word >> ADDRESS_BITS != 0)
            .map(|word| word & ((1 << ADDRESS_BITS) - 1));
        let found = addresses.filter_map(|address| self.ranges.block_at(address));
        found.filter(|found| found.offset == 0).map(|found| found.block).collect()
    }

    /// Follows the pointers of the blocks that no root reaches: first of those that nothing points
    /// at, then of cycles.
    pub(super) fn follow_heads(&mut self, roots: &Roots<'_>) {
        let blocks = (0..).take(self.dump.blocks.len());
        let left: Vec<u32> =
            blocks.filter(|&block| self.reached_from[block as usize] == NONE).collect();
        let mut is_held = vec![false; self.dump.blocks.len()];
        let mut builder = Builder::default();
        for &block in &left {
            self.ranges.each_link_of(block, |link| {
                if link.to != block {
                    is_held[link.to as usize] = true;
                    builder.add(block, link.to);
                }
            });
            for to in self.tagged(block).into_iter().filter(|to| *to != block) {
                is_held[to as usize] = true;
                builder.add(block, to);
            }
        }
        let heads = left.iter().copied().filter(|&block| !is_held[block as usize]);
        self.begin_at(heads.collect(), roots);
        let reached: Vec<bool> = self.reached_from.iter().map(|from| *from != NONE).collect();
        let cycles = loose_cycles(&builder.finish(self.dump.blocks.len()), &reached);
        let first = cycles.iter().filter_map(|cycle| cycle.first().copied());
        self.begin_at(first.collect(), roots);
    }

    fn begin_at(&mut self, heads: Vec<u32>, roots: &Roots<'_>) {
        for &head in &heads {
            self.push(roots.external, head, (Strength::Word, LabelId::WORD), None);
        }
        self.heads.extend(heads);
        let first = self.order.len();
        self.run();
        self.follow_tagged(first);
    }
}

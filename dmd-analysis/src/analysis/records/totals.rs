//! Sums of blocks and bytes.

use crate::read::{Block, Sum};

/// A number of blocks and their bytes, negative in a difference.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Number of blocks.
    pub blocks: i128,
    /// Requested bytes.
    pub req: i128,
    /// Slop bytes: what the allocator adds to the requested ones.
    pub slop: i128,
}

impl From<Sum> for Totals {
    /// Takes all bytes as requested ones.
    fn from(Sum { blocks, bytes }: Sum) -> Self {
        Self { blocks: blocks.into(), req: bytes.into(), slop: 0 }
    }
}

impl Totals {
    /// Returns requested bytes and slop.
    #[must_use]
    pub fn usable(&self) -> i128 {
        self.req.saturating_add(self.slop)
    }

    /// Adds `num` blocks of `req` and `slop` bytes each.
    pub(crate) fn add(&mut self, num: u64, req: u64, slop: u64) {
        let num = i128::from(num);
        self.blocks = self.blocks.saturating_add(num);
        self.req = self.req.saturating_add(num.saturating_mul(req.into()));
        self.slop = self.slop.saturating_add(num.saturating_mul(slop.into()));
    }

    /// Adds the blocks of a record, times their weight: a sampled block counts for all that it
    /// represents.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "an estimate with the precision of its digits"
    )]
    pub(crate) fn add_weighted(&mut self, block: &Block<'_>) {
        // A dump leaves out a weight of 1, so the comparison is exact.
        if block.kind.weight <= 1.0 || !block.kind.weight.is_finite() {
            return self.add(block.num, block.req, block.slop);
        }
        let blocks = block.num as f64 * block.kind.weight;
        *self = self.plus(&Self {
            blocks: blocks.round() as i128,
            req: (blocks * block.req as f64).round() as i128,
            slop: (blocks * block.slop as f64).round() as i128,
        });
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            blocks: self.blocks.saturating_add(other.blocks),
            req: self.req.saturating_add(other.req),
            slop: self.slop.saturating_add(other.slop),
        }
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        Self {
            blocks: self.blocks.saturating_sub(other.blocks),
            req: self.req.saturating_sub(other.req),
            slop: self.slop.saturating_sub(other.slop),
        }
    }
}

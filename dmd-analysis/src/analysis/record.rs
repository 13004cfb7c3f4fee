//! A record: the blocks that share their stacks, or how two such records differ.

use super::{ListId, StackId};

use crate::read::Block;

/// Blocks and bytes. Negative in a difference.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Number of blocks.
    pub blocks: i128,
    /// Bytes asked for.
    pub req: i128,
    /// Bytes given on top.
    pub slop: i128,
}

impl Totals {
    /// Requested bytes and slop.
    #[must_use]
    pub fn usable(&self) -> i128 {
        self.req.saturating_add(self.slop)
    }

    pub(crate) fn add(&mut self, num: u64, req: u64, slop: u64) {
        let num = i128::from(num);
        self.blocks = self.blocks.saturating_add(num);
        self.req = self.req.saturating_add(num.saturating_mul(req.into()));
        self.slop = self.slop.saturating_add(num.saturating_mul(slop.into()));
    }

    /// Adds blocks for what they stand for: sampled ones for all that are like them.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "an estimate, as good as its digits"
    )]
    pub(crate) fn add_weighted(&mut self, block: &Block) {
        // A weight of 1 is written by leaving it out, so it is exact.
        if block.weight <= 1.0 || !block.weight.is_finite() {
            return self.add(block.num, block.req, block.slop);
        }
        let blocks = block.num as f64 * block.weight;
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

/// How many blocks there are of each usable size, in order of first appearance.
///
/// In a difference a size that went away is negative and its count positive, as in dmd.py.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sizes(pub(crate) Vec<(i64, i64)>);

impl Sizes {
    /// Pairs of size and count, largest size first.
    #[must_use]
    pub fn sorted(&self) -> Vec<(i64, i64)> {
        let mut sizes = self.0.clone();
        sizes.sort_by_key(|&(size, _)| std::cmp::Reverse(size.unsigned_abs()));
        sizes
    }

    fn negated(&self) -> Self {
        Self(self.0.iter().map(|&(size, count)| (-size, count)).collect())
    }

    fn minus(&self, other: &Self) -> Self {
        let mut rest: Vec<Option<(i64, i64)>> = other.0.iter().copied().map(Some).collect();
        let mut by_size: rustc_hash::FxHashMap<i64, usize> =
            other.0.iter().enumerate().map(|(at, &(size, _))| (size, at)).collect();
        let mut sizes = Vec::new();
        for &(size, count) in &self.0 {
            let gone = by_size.remove(&size).and_then(|at| rest[at].take());
            match gone.map(|(_, gone)| count - gone) {
                None => sizes.push((size, count)),
                Some(0) => {}
                Some(more) if more > 0 => sizes.push((size, more)),
                Some(fewer) => sizes.push((-size, -fewer)),
            }
        }
        sizes.extend(rest.into_iter().flatten().map(|(size, count)| (-size, count)));
        Self(sizes)
    }
}

/// Blocks that share the stack that allocated them and the stacks that reported them.
#[derive(Debug, Clone)]
pub struct Record {
    /// Where they were allocated.
    pub alloc: StackId,
    /// Where they were reported, first report first.
    pub reports: ListId,
    /// What they amount to.
    pub totals: Totals,
    /// Their usable sizes.
    pub sizes: Sizes,
    /// Their addresses (scan mode).
    pub addrs: Vec<u64>,
}

impl Record {
    pub(crate) fn new(alloc: StackId, reports: ListId) -> Self {
        let (totals, sizes) = (Totals::default(), Sizes::default());
        Self { alloc, reports, totals, sizes, addrs: Vec::new() }
    }

    /// What makes it one record: equal in two dumps that share their [`Stacks`](super::Stacks).
    pub(crate) fn key(&self) -> (StackId, ListId) {
        (self.alloc, self.reports)
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.totals == Totals::default() && self.sizes.0.is_empty()
    }

    pub(crate) fn negate(&mut self) {
        self.totals = Totals::default().minus(&self.totals);
        self.sizes = self.sizes.negated();
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.totals = self.totals.minus(&other.totals);
        self.sizes = self.sizes.minus(&other.sizes);
    }
}

//! A record: the blocks that share their stacks, or the difference of two such records.

use super::addresses::Addresses;
use super::stacks::{ListId, StackId};
use super::totals::Totals;

/// The blocks of one usable size.
///
/// In a difference a size that disappeared is negative and its count positive, as in dmd.py.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeCount {
    /// The usable bytes of each block.
    pub size: i64,
    /// The number of blocks.
    pub count: i64,
}

/// The number of blocks of each usable size, in order of first appearance.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sizes(pub(crate) Vec<SizeCount>);

impl Sizes {
    /// Returns the sizes with their counts, largest size first.
    #[must_use]
    pub fn sorted(&self) -> Vec<SizeCount> {
        let mut sizes = self.0.clone();
        sizes.sort_by_key(|of| std::cmp::Reverse(of.size.unsigned_abs()));
        sizes
    }

    fn negated(&self) -> Self {
        Self(self.0.iter().map(|of| SizeCount { size: -of.size, ..*of }).collect())
    }

    fn minus(&self, other: &Self) -> Self {
        let mut rest: Vec<Option<SizeCount>> = other.0.iter().copied().map(Some).collect();
        let mut by_size: rustc_hash::FxHashMap<i64, usize> =
            other.0.iter().enumerate().map(|(at, of)| (of.size, at)).collect();
        let mut sizes = Vec::new();
        for &SizeCount { size, count } in &self.0 {
            let gone = by_size.remove(&size).and_then(|at| rest[at].take());
            match gone.map(|gone| count - gone.count) {
                None => sizes.push(SizeCount { size, count }),
                Some(0) => {}
                Some(more) if more > 0 => sizes.push(SizeCount { size, count: more }),
                Some(fewer) => sizes.push(SizeCount { size: -size, count: -fewer }),
            }
        }
        sizes.extend(rest.into_iter().flatten().map(|of| SizeCount { size: -of.size, ..of }));
        Self(sizes)
    }
}

/// The blocks that share the stack that allocated them and the stacks that reported them.
#[derive(Debug, Clone)]
pub struct Record {
    /// The stack that allocated them.
    pub alloc: StackId,
    /// The stacks that reported them, first report first.
    pub reports: ListId,
    /// Their number and bytes.
    pub totals: Totals,
    /// Their usable sizes.
    pub sizes: Sizes,
    /// Their addresses (scan mode).
    pub addrs: Addresses,
}

impl Record {
    pub(crate) fn new(alloc: StackId, reports: ListId) -> Self {
        let (totals, sizes) = (Totals::default(), Sizes::default());
        Self { alloc, reports, totals, sizes, addrs: Addresses::default() }
    }

    /// Returns the key of the record, which is equal in two dumps that share their
    /// [`Stacks`](super::Stacks).
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

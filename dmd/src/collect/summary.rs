//! The sums of one collection.

/// A number of blocks and their usable bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub blocks: usize,
    /// Their bytes, slop included.
    pub bytes: usize,
}

impl Sum {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.blocks += 1;
        self.bytes += bytes;
    }

    pub(crate) fn and(self, other: Sum) -> Sum {
        Sum { blocks: self.blocks + other.blocks, bytes: self.bytes + other.bytes }
    }
}

/// What a sample says of all blocks, with its spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// How many blocks.
    pub blocks: f64,
    /// Their usable bytes.
    pub bytes: f64,
    pub(crate) variance: f64,
}

impl Estimate {
    /// The standard error of [`bytes`](Self::bytes): the true number lies within twice that in nineteen of twenty samples,
    /// where the sample has a few dozen blocks at least.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.variance.sqrt()
    }
}

/// The books of a profile, extrapolated from the blocks in the sample to those made since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sampled {
    /// All blocks.
    pub all: Estimate,
    /// Blocks that nobody reports.
    pub unreported: Estimate,
    /// Blocks that one reporter reports.
    pub once: Estimate,
    /// Blocks that are reported twice or more.
    pub twice: Estimate,
}

/// The books of one collection. All are usable bytes of blocks that were born before the collection and live still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// All blocks, by the allocator's counters.
    pub heap_allocated: usize,
    /// Blocks that nobody reports.
    pub unreported: Sum,
    /// Blocks that one reporter reports.
    pub once: Sum,
    /// Blocks that are reported twice or more.
    pub twice: Sum,
    /// Bytes of reported blocks that their first report leaves out.
    pub short: usize,
    /// Bytes that were reported beyond what the blocks have: doubles, non-heap, interior, freed since.
    pub over_reported: usize,
    /// Bytes that were reported as heap without having been measured block by block.
    pub unmeasured: i64,
    /// Blocks that the table was never told of: made before tracking began or while it was off, or not in the sample. None of
    /// the sums above has them.
    pub untracked: Sum,
    /// Bytes of such blocks that are reported.
    pub reported_untracked: usize,
    /// Blocks that were born during the collection, and are in none of these.
    pub allocated_during: Sum,
    /// Blocks that the table had no place for.
    pub lost_blocks: usize,
    /// Claims that memory was short for.
    pub lost_marks: usize,
}

impl Summary {
    /// What `heap-unclassified` must be by these books, in bytes: found from the blocks, where a viewer subtracts the
    /// reports from `heap-allocated`. The two agree to the byte in a program that is quiet during the collection.
    #[must_use]
    pub fn unclassified(&self) -> i64 {
        let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        signed(self.unreported.bytes) + signed(self.short)
            - signed(self.over_reported)
            - self.unmeasured
            + signed(self.untracked.bytes)
            - signed(self.reported_untracked)
    }
}

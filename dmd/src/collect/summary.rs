//! The sums of one collection.

/// A number of blocks and their usable bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The number of blocks.
    pub blocks: usize,
    /// Their usable bytes, slop included.
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

/// An estimate of all blocks from a sample, with its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The number of blocks.
    pub blocks: f64,
    /// Their usable bytes, slop included.
    pub bytes: f64,
    pub(crate) variance: f64,
}

impl Estimate {
    /// Returns the standard error of [`bytes`](Self::bytes), in bytes.
    ///
    /// The true number lies within two standard errors in 19 of 20 samples, provided that the
    /// sample has at least a few dozen blocks.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Adds a sampled block that represents `weight` blocks.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn add(&mut self, bytes: usize, weight: f64) {
        let bytes = bytes as f64;
        self.blocks += weight;
        self.bytes += bytes * weight;
        // The Horvitz-Thompson estimator of the variance, for independently sampled blocks.
        self.variance += bytes * bytes * weight * (weight - 1.0);
    }
}

/// The sums of a profile: estimates of all blocks that were allocated since sampling began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sampled {
    /// All blocks.
    pub all: Estimate,
    /// Blocks that no reporter reports.
    pub unreported: Estimate,
    /// Blocks that are reported once.
    pub once: Estimate,
    /// Blocks that are reported twice or more.
    pub twice: Estimate,
}

/// The sums of one collection, in usable bytes.
///
/// They cover blocks that were allocated before the collection and are still live when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The bytes of all blocks, by the allocator's counters.
    pub heap_allocated: usize,
    /// Blocks that no reporter reports.
    pub unreported: Sum,
    /// Blocks that are reported once.
    pub once: Sum,
    /// Blocks that are reported twice or more.
    pub twice: Sum,
    /// Bytes of reported blocks that their first report leaves out.
    pub under_reported: usize,
    /// Bytes that were reported beyond the size of the blocks: double, non-heap and interior
    /// reports.
    pub over_reported: usize,
    /// Bytes of reported blocks that were allocated during the collection, or freed before its end.
    /// If the table has gaps, only those by which the heap grew.
    /// No other sum includes them; `heap-allocated` of the report does.
    pub reported_transient: usize,
    /// Bytes that were reported as heap without being measured block by block.
    pub unmeasured: i64,
    /// Blocks that are not in the table: allocated before tracking began or while it was off, or
    /// not sampled. No other sum includes them.
    pub untracked: Sum,
    /// Bytes of untracked blocks that are reported.
    pub reported_untracked: usize,
    /// Blocks that were allocated during the collection. No other sum includes them.
    pub allocated_during: Sum,
    /// The number of blocks that are in no dump because memory was short.
    pub lost_blocks: usize,
    /// The number of claims that were dropped because memory was short.
    pub lost_claims: usize,
}

impl Summary {
    /// Returns the sum of all blocks of the table.
    pub(super) fn tracked(&self) -> Sum {
        self.unreported.and(self.once).and(self.twice)
    }

    /// Divides the reported bytes of blocks that were allocated during the collection, where the
    /// table has gaps: `grown` of them have enlarged the heap since its beginning. Others replace
    /// blocks that were freed, which the heap of the beginning includes and the table may lack.
    pub(super) fn share_transient_with_gaps(&mut self, grown: usize) {
        let replacing = self.reported_transient.saturating_sub(grown);
        self.reported_transient -= replacing;
        self.reported_untracked += replacing;
    }

    /// Returns the bytes of `heap-unclassified`, computed from the blocks.
    ///
    /// A viewer computes it differently: `heap-allocated` of the report minus the heap reports. The
    /// two are equal, also if other threads allocate and free during the collection.
    #[must_use]
    pub fn unclassified(&self) -> i64 {
        let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        signed(self.unreported.bytes) + signed(self.under_reported)
            - signed(self.over_reported)
            - self.unmeasured
            + signed(self.untracked.bytes)
            - signed(self.reported_untracked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclassified_bytes_balance_the_sums() {
        let sum = |bytes| Sum { blocks: 1, bytes };
        let summary = Summary {
            heap_allocated: 100_000_000,
            unreported: sum(1_000_000),
            once: sum(10_000_000),
            twice: sum(20_000_000),
            under_reported: 200_000,
            over_reported: 30_000,
            unmeasured: 4_000,
            untracked: sum(500),
            reported_untracked: 60,
            ..Summary::default()
        };
        // Each term has digits of its own: a missing or negated one changes them.
        assert_eq!(summary.unclassified(), 1_200_500 - 34_060);
    }

    #[test]
    fn reported_blocks_that_replace_others_do_not_enlarge_the_heap() {
        for (grown, transient) in [(0, 0), (300, 300), (5000, 1000)] {
            let mut summary = Summary { reported_transient: 1000, ..Summary::default() };
            summary.share_transient_with_gaps(grown);
            let found = (summary.reported_transient, summary.reported_untracked);
            assert_eq!(found, (transient, 1000 - transient), "{grown}");
        }
    }

    #[test]
    fn an_estimate_is_unbiased_and_has_its_standard_error() {
        let mut estimate = Estimate::default();
        // A block that stands for itself alone adds no error.
        estimate.add(1000, 1.0);
        assert_eq!((estimate.blocks, estimate.bytes, estimate.error()), (1.0, 1000.0, 0.0));
        estimate.add(100, 10.0);
        estimate.add(100, 10.0);
        assert_eq!((estimate.blocks, estimate.bytes), (21.0, 3000.0));
        // Twice 100² · 10 · 9.
        assert!((estimate.error() - 1_800_000.0_f64.sqrt()).abs() < 1e-9);
    }
}

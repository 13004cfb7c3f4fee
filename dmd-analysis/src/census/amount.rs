//! Amounts of blocks: numbers and bytes, exact or estimated from a sample.

/// A number of blocks and their bytes. Negative in differences.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// The number of blocks; of a sample, the estimate for all.
    pub count: i64,
    /// Their usable bytes; of a sample, the estimate for all.
    pub bytes: i64,
    /// The part of those bytes that was not requested.
    pub slop: i64,
    /// The number of blocks in the sample; without sampling, all.
    pub sampled_count: i64,
    /// Their usable bytes.
    pub sampled_bytes: i64,
}

/// The size of one block.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BlockSize {
    /// The requested bytes.
    pub requested: u64,
    /// The usable bytes beyond the requested ones.
    pub slop: u64,
}

impl Amount {
    /// Returns the amount of `num` blocks of one size, each of which stands for `weight` blocks.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "an estimate, as good as its digits"
    )]
    #[must_use]
    pub fn new(num: u64, size: BlockSize, weight: f64) -> Self {
        let BlockSize { requested, slop } = size;
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let times = |size: u64| whole(num.saturating_mul(size));
        let (count, bytes) = (whole(num), times(requested).saturating_add(times(slop)));
        let exact =
            Amount { count, bytes, slop: times(slop), sampled_count: count, sampled_bytes: bytes };
        if weight <= 1.0 || !weight.is_finite() {
            return exact;
        }
        let blocks = num as f64 * weight;
        // Each amount is rounded once, here: rounded numbers have the same sum in any order.
        let all = |size: u64| (blocks * size as f64).round() as i64;
        Amount {
            count: blocks.round() as i64,
            bytes: all(requested).saturating_add(all(slop)),
            slop: all(slop),
            ..exact
        }
    }

    /// Returns an amount of which only the sum is known. None of it is in a sample.
    pub(super) fn of_sum(blocks: u64, bytes: u64) -> Self {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Amount { count: whole(blocks), bytes: whole(bytes), ..Amount::default() }
    }

    /// Adds blocks.
    pub fn add(&mut self, other: &Amount) {
        self.combine(other, i64::saturating_add);
    }

    pub(super) fn subtract(&mut self, other: &Amount) {
        self.combine(other, i64::saturating_sub);
    }

    fn combine(&mut self, other: &Amount, with: fn(i64, i64) -> i64) {
        let Amount { count, bytes, slop, sampled_count, sampled_bytes } = self;
        *count = with(*count, other.count);
        *bytes = with(*bytes, other.bytes);
        *slop = with(*slop, other.slop);
        *sampled_count = with(*sampled_count, other.sampled_count);
        *sampled_bytes = with(*sampled_bytes, other.sampled_bytes);
    }
}

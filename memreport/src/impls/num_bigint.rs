//! Measures big numbers of `num-bigint`. *Exact with the tracker*; without it their digits, without
//! spare capacity.

use num_bigint::{BigInt, BigUint};

use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

impl MallocSizeOf for BigUint {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let digits = self.iter_u64_digits().len().saturating_mul(size_of::<u64>());
        ops.blocks_by_words(words_of(self), |_, _| true, digits);
    }
}

/// The sign is separate and owns nothing.
impl MallocSizeOf for BigInt {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.magnitude().add_size_of_excluding_this(ops);
    }
}

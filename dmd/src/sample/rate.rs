//! Sampling probabilities, and the numbers that stand for them in a block's word.
//!
//! A probability has two independent parts: a trial per block with probability p, and a trial per
//! byte with a mean distance of R bytes. A block of n bytes is sampled with probability 1 − (1 −
//! p)·e^(−n/R). Its weight is the inverse, which makes weighted sums unbiased.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "sizes are far below 2^53"
)]

use std::num::NonZeroU64;

use crate::mem::published::Published;
use crate::mem::sync::Ordering::{AcqRel, Acquire};
use crate::mem::sync::{AtomicU64, array_of, const_fn};

/// The probability that a block is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Probability {
    /// The mean distance between successes in bytes; `None` without trials per byte.
    pub(crate) mean: Option<NonZeroU64>,
    /// The probability of a success per block, whatever its size.
    pub(crate) of_block: f64,
}

impl Probability {
    /// No block is sampled.
    pub(crate) const NEVER: Probability = Probability { mean: None, of_block: 0.0 };
    /// Every block is sampled.
    pub(crate) const ALWAYS: Probability = Probability { mean: None, of_block: 1.0 };

    /// Returns a probability with trials per byte only.
    pub(crate) fn of_bytes(mean: NonZeroU64) -> Probability {
        Probability { mean: Some(mean), of_block: 0.0 }
    }

    /// Returns the greater of both, part by part.
    pub(crate) fn max(self, other: Probability) -> Probability {
        let mean = self.mean.into_iter().chain(other.mean).min();
        Probability { mean, of_block: self.of_block.max(other.of_block) }
    }

    /// Returns the number of blocks that a sampled block of this many bytes stands for.
    fn weight(self, bytes: usize) -> f64 {
        match self.mean {
            None => 1.0 / self.of_block,
            Some(mean) => {
                let exponent = -(bytes as f64) / mean.get() as f64;
                // Equal to 1 − (1 − p)·e^x, but more exact near 0.
                1.0 / (self.of_block * exponent.exp() - exponent.exp_m1())
            }
        }
    }

    /// Encodes the probability in two words that are never 0.
    fn words(self) -> [u64; 2] {
        [self.mean.map_or(u64::MAX, NonZeroU64::get), self.of_block.to_bits() + 1]
    }

    fn from_words([mean, of_block]: [u64; 2]) -> Option<Probability> {
        let mean = NonZeroU64::new(mean)?;
        let of_block = f64::from_bits(of_block.checked_sub(1)?);
        Some(Probability { mean: Some(mean).filter(|mean| mean.get() != u64::MAX), of_block })
    }
}

/// The number of a probability in a block's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SamplingRate(u8);

/// The number of rates that fit into a block's word.
pub(crate) const RATES: usize = 32;

#[cfg(not(loom))]
static RATE_TABLE: RateTable = RateTable::new();

/// The number of entries of the table of rates.
const ENTRIES: usize = if cfg!(loom) { 1 } else { RATES - 1 };

/// The probability of each rate, from number 1; zeros are unused entries.
pub(super) struct RateTable([[AtomicU64; 2]; ENTRIES]);

impl RateTable {
    const_fn! {
        pub(super) fn new() -> Self {
            RateTable(array_of!(array_of!(AtomicU64::new(0); 2); ENTRIES))
        }
    }

    pub(super) fn rate_of(&self, probability: Probability) -> Result<SamplingRate, TooManyRates> {
        // AcqRel and Acquire, with each other: each word is claimed once. Of two probabilities that
        // share a first word, the first to claim the second word owns the entry.
        let claims = |place: &AtomicU64, word| {
            let claimed = place.compare_exchange(0, word, AcqRel, Acquire);
            claimed.is_ok() || claimed == Err(word)
        };
        let wanted = probability.words();
        let mut places = (1..).zip(&self.0);
        let found =
            places.find(|(_, words)| words.iter().zip(wanted).all(|(at, to)| claims(at, to)));
        found.map(|(number, _)| SamplingRate(number)).ok_or(TooManyRates)
    }

    pub(super) fn of(&self, rate: SamplingRate) -> Option<Probability> {
        let words = self.0.get(usize::from(rate.0).checked_sub(1)?)?;
        // Acquire, with the Release in `claims`. Both words are visible: a rate comes from
        // `rate_of`, from a `RateCell`, or with a block's word.
        Probability::from_words([words[0].load(Acquire), words[1].load(Acquire)])
    }
}

/// The rate that a sampler draws at. A thread that sees a rate also sees its probability.
pub(crate) struct RateCell(Published);

impl RateCell {
    const_fn! {
        pub(crate) fn new(rate: SamplingRate) -> Self {
            RateCell(Published::new(rate.0 as u32))
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "only numbers of rates are stored")]
    pub(crate) fn get(&self) -> SamplingRate {
        SamplingRate(self.0.get() as u8)
    }

    pub(crate) fn set(&self, rate: SamplingRate) {
        self.0.set(u32::from(rate.0));
    }
}

/// The error that a process has no number left for another probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyRates;

impl SamplingRate {
    /// Every block is sampled.
    pub(crate) const EVERY: SamplingRate = SamplingRate(0);
    /// The rate of `--stacks=partial`: every block is inserted, and its stack is sampled. Never in
    /// a block's word.
    pub(crate) const PARTIAL: SamplingRate = SamplingRate(RATES as u8);
    /// The samplers of threads are suspended: those of observers decide instead. Never in a
    /// block's word.
    pub(crate) const SUSPENDED: SamplingRate = SamplingRate(RATES as u8 + 1);

    /// Returns the rate of a probability, a new one if necessary.
    #[cfg(not(loom))]
    pub(crate) fn of(probability: Probability) -> Result<SamplingRate, TooManyRates> {
        if probability.of_block >= 1.0 {
            Ok(SamplingRate::EVERY)
        } else {
            RATE_TABLE.rate_of(probability)
        }
    }

    #[inline]
    pub(crate) fn from_number(number: u8) -> Self {
        SamplingRate(number)
    }

    #[inline]
    pub(crate) const fn number(self) -> u8 {
        self.0
    }

    #[cfg(not(loom))]
    pub(crate) fn probability(self) -> Probability {
        match self {
            SamplingRate::EVERY => Probability::ALWAYS,
            rate => RATE_TABLE.of(rate).unwrap_or(Probability::NEVER),
        }
    }

    /// Returns the mean distance between successes in bytes.
    #[cfg(not(loom))]
    pub(crate) fn mean(self) -> f64 {
        match self {
            SamplingRate::PARTIAL => -1.0 / (1.0 - PARTIAL_PROBABILITY).ln(),
            rate => rate.probability().mean.map_or(1.0, |bytes| bytes.get() as f64),
        }
    }

    /// Returns the number of blocks that a block of this many bytes stands for: 1 if every block is
    /// sampled.
    #[cfg(not(loom))]
    pub(crate) fn weight(self, bytes: usize) -> f64 {
        match self {
            SamplingRate::EVERY | SamplingRate::PARTIAL => 1.0,
            rate => rate.probability().weight(bytes),
        }
    }
}

/// The probability that a byte gets its block a stack. It is Mozilla's number: in Firefox, a
/// quarter of the blocks with four fifths of the bytes get one.
const PARTIAL_PROBABILITY: f64 = 0.003;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn bytes(mean: u64) -> Probability {
        Probability::of_bytes(NonZeroU64::new(mean).expect("it is not zero"))
    }

    #[test]
    fn a_process_has_31_rates() {
        let probabilities = RateTable::new();
        for number in 1..31 {
            assert_eq!(
                probabilities.rate_of(bytes(u64::from(number) * 1000)),
                Ok(SamplingRate(number))
            );
        }
        let both = Probability { of_block: 0.05, ..bytes(7000) };
        assert_eq!(
            probabilities.rate_of(both),
            Ok(SamplingRate(31)),
            "the first word alone is not the chance"
        );
        assert_eq!(
            probabilities.rate_of(Probability { mean: None, of_block: 0.05 }),
            Err(TooManyRates)
        );
        let read =
            |probability| probabilities.rate_of(probability).map(|rate| probabilities.of(rate));
        assert_eq!(read(bytes(7000)), Ok(Some(bytes(7000))));
        assert_eq!(read(both), Ok(Some(both)));
    }

    #[test]
    fn the_weight_is_the_inverse_probability() {
        let weight = |probability: Probability| probability.weight(65_536);
        assert_eq!(weight(Probability { mean: None, of_block: 0.05 }), 20.0);
        assert_eq!(weight(Probability::ALWAYS), 1.0);
        let of_bytes = 1.0 / (1.0 - (-1.0_f64).exp());
        assert!((weight(bytes(65_536)) - of_bytes).abs() < 1e-12);
        let both = weight(Probability { of_block: 0.05, ..bytes(65_536) });
        assert!((both - 1.0 / (1.0 - 0.95 * (-1.0_f64).exp())).abs() < 1e-12);
        assert!(
            (weight(Probability { of_block: 0.0, ..bytes(1 << 40) }) / f64::from(1 << 24) - 1.0)
                .abs()
                < 1e-6
        );
    }

    #[test]
    fn of_several_probabilities_the_greatest_holds() {
        let both = bytes(100).max(Probability { mean: None, of_block: 0.5 }).max(bytes(200));
        assert_eq!(both, Probability { of_block: 0.5, ..bytes(100) });
        assert_eq!(Probability::NEVER.max(Probability::ALWAYS), Probability::ALWAYS);
    }
}

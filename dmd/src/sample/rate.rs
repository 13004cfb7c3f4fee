//! How likely blocks are to be in a sample, and the numbers by which blocks' words name that.
//!
//! A probability has two halves, drawn for one by one: each block is in with the probability p, and each of its n bytes wins with
//! a mean distance of R bytes. So a block is in with the probability 1 − (1 − p)·e^(−n/R), and stands for one over that many
//! blocks like it: sums of so weighted blocks are unbiased.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "sizes are far below 2^53"
)]

use std::num::NonZeroU64;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// How likely blocks are to be in a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Probability {
    /// The mean distance between bytes that win; `None` if bytes are not drawn for.
    pub(crate) mean: Option<NonZeroU64>,
    /// The probability of a block, whatever its size.
    pub(crate) of_block: f64,
}

impl Probability {
    /// No block is in.
    pub(crate) const NEVER: Probability = Probability { mean: None, of_block: 0.0 };
    /// Every block is in.
    pub(crate) const ALWAYS: Probability = Probability { mean: None, of_block: 1.0 };

    /// One byte in so many wins.
    pub(crate) fn of_bytes(mean: NonZeroU64) -> Probability {
        Probability { mean: Some(mean), of_block: 0.0 }
    }

    /// The greater of both, half by half.
    pub(crate) fn or(self, other: Probability) -> Probability {
        let mean = self.mean.into_iter().chain(other.mean).min();
        Probability { mean, of_block: self.of_block.max(other.of_block) }
    }

    /// How many blocks like it a block of the sample with this many bytes stands for.
    fn weight(self, bytes: usize) -> f64 {
        match self.mean {
            None => 1.0 / self.of_block,
            Some(mean) => {
                let exponent = -(bytes as f64) / mean.get() as f64;
                // As 1 − (1 − p)·e^x, and near 0 more exact.
                1.0 / (self.of_block * exponent.exp() - exponent.exp_m1())
            }
        }
    }

    /// Two words that are never 0.
    fn words(self) -> [u64; 2] {
        [self.mean.map_or(u64::MAX, NonZeroU64::get), self.of_block.to_bits() + 1]
    }

    fn from_words([mean, of_block]: [u64; 2]) -> Option<Probability> {
        let mean = NonZeroU64::new(mean)?;
        let of_block = f64::from_bits(of_block.checked_sub(1)?);
        Some(Probability { mean: Some(mean).filter(|mean| mean.get() != u64::MAX), of_block })
    }
}

/// The number of a probability, as a block's word has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SamplingRate(u8);

/// As many as a block's word can tell apart.
pub(crate) const RATES: usize = 32;

static PROBABILITIES: Probabilities = Probabilities::new();

/// The probability of each rate, from number 1; zeros are not in use.
struct Probabilities([[AtomicU64; 2]; RATES - 1]);

impl Probabilities {
    const fn new() -> Self {
        Probabilities([const { [const { AtomicU64::new(0) }; 2] }; RATES - 1])
    }

    fn rate_of(&self, probability: Probability) -> Result<SamplingRate, TooManyRates> {
        // AcqRel and Acquire, with themselves: each word is claimed once. A place whose first word was claimed by a probability with
        // another second one is that probability's.
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

    fn of(&self, rate: SamplingRate) -> Option<Probability> {
        let words = self.0.get(usize::from(rate.0).checked_sub(1)?)?;
        // Acquire, with the claim: a rate is known to nobody before both words are there.
        Probability::from_words([words[0].load(Acquire), words[1].load(Acquire)])
    }
}

/// More samples with a probability of their own than a process can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyRates;

impl SamplingRate {
    /// Every block is in.
    pub(crate) const EVERY: SamplingRate = SamplingRate(0);
    /// That of `--stacks=partial`. No block's word has it: all are in, and only stacks are drawn.
    pub(crate) const PARTIAL: SamplingRate = SamplingRate(RATES as u8);
    /// Nothing is drawn: somebody else draws for every block. No block's word has it.
    pub(crate) const HELD: SamplingRate = SamplingRate(RATES as u8 + 1);

    /// The rate of this probability.
    pub(crate) fn of(probability: Probability) -> Result<SamplingRate, TooManyRates> {
        if probability.of_block >= 1.0 {
            Ok(SamplingRate::EVERY)
        } else {
            PROBABILITIES.rate_of(probability)
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

    pub(crate) fn probability(self) -> Probability {
        match self {
            SamplingRate::EVERY => Probability::ALWAYS,
            rate => PROBABILITIES.of(rate).unwrap_or(Probability::NEVER),
        }
    }

    /// The mean distance between bytes that win.
    pub(crate) fn mean(self) -> f64 {
        match self {
            SamplingRate::PARTIAL => -1.0 / (1.0 - PARTIAL_PROBABILITY).ln(),
            rate => rate.probability().mean.map_or(1.0, |bytes| bytes.get() as f64),
        }
    }

    /// How many blocks like it a block of this many bytes stands for: 1 where every block is in.
    pub(crate) fn weight(self, bytes: usize) -> f64 {
        match self {
            SamplingRate::EVERY | SamplingRate::PARTIAL => 1.0,
            rate => rate.probability().weight(bytes),
        }
    }
}

/// How likely a byte is to get its block a stack: Mozilla's number. In Firefox a quarter of the blocks and four fifths of the
/// bytes then have one.
const PARTIAL_PROBABILITY: f64 = 0.003;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(mean: u64) -> Probability {
        Probability::of_bytes(NonZeroU64::new(mean).unwrap())
    }

    #[test]
    fn a_process_tells_31_chances_apart() {
        let probabilities = Probabilities::new();
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
    fn a_block_stands_for_as_many_as_its_chance_says() {
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
    fn of_several_the_greater_chance_holds() {
        let both = bytes(100).or(Probability { mean: None, of_block: 0.5 }).or(bytes(200));
        assert_eq!(both, Probability { of_block: 0.5, ..bytes(100) });
        assert_eq!(Probability::NEVER.or(Probability::ALWAYS), Probability::ALWAYS);
    }
}

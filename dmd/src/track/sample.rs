//! Which blocks are in a sample: each byte is a draw, and a block is in if one of its bytes wins.
//!
//! A thread counts down the bytes to its next winner, so that most blocks cost a subtraction. The distance between winners is
//! geometric: of a mean of R bytes, a block of n bytes is in with the probability 1 − e^(−n/R), whatever came before it. One
//! that is in therefore stands for 1 / (1 − e^(−n/R)) blocks like it, and sums of so weighted blocks are unbiased.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are far below 2^53, and the conversion from a float saturates"
)]

use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU8, AtomicU64};

/// The number of a sampling rate, as a block's word has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rate(u8);

/// As many as a block's word can tell apart.
const RATES: usize = 8;

static MEANS: Means = Means::new();

/// The mean of each rate in bytes, from number 1; 0 is not in use.
struct Means([AtomicU64; RATES - 1]);

impl Means {
    const fn new() -> Self {
        Means([const { AtomicU64::new(0) }; RATES - 1])
    }

    fn rate_of(&self, bytes: NonZeroU64) -> Result<Rate, TooManyRates> {
        for (number, mean) in (1..).zip(&self.0) {
            match mean.compare_exchange(0, bytes.get(), AcqRel, Acquire) {
                Ok(_) => return Ok(Rate(number)),
                Err(taken) if taken == bytes.get() => return Ok(Rate(number)),
                Err(_) => {}
            }
        }
        Err(TooManyRates)
    }

    fn of(&self, rate: Rate) -> Option<u64> {
        Some(self.0.get(usize::from(rate.0).checked_sub(1)?)?.load(Relaxed))
    }
}

/// The rate of the draws now.
static CURRENT: AtomicU8 = AtomicU8::new(0);

/// The rate of the draws is the process's: a test that sets it holds this.
#[cfg(test)]
pub(crate) static CURRENT_IN_TESTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// More profiles with a mean of their own than a process can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyRates;

impl Rate {
    /// Every block is in.
    pub(crate) const EVERY: Rate = Rate(0);
    /// That of `--stacks=partial`. No block's word has it: all are in, and only stacks are drawn.
    pub(crate) const PARTIAL: Rate = Rate(RATES as u8);

    /// The rate of this mean.
    pub(crate) fn of_mean(bytes: NonZeroU64) -> Result<Rate, TooManyRates> {
        MEANS.rate_of(bytes)
    }

    #[inline]
    pub(crate) fn from_number(number: u8) -> Self {
        Rate(number)
    }

    #[inline]
    pub(crate) fn number(self) -> u8 {
        self.0
    }

    /// The mean distance between winners, in bytes.
    fn mean(self) -> f64 {
        match self {
            Rate::PARTIAL => -1.0 / (1.0 - PARTIAL_PROBABILITY).ln(),
            rate => MEANS.of(rate).map_or(1.0, |bytes| bytes as f64),
        }
    }

    /// How many blocks like it a block of this many bytes stands for: 1 where every block is in.
    pub(crate) fn weight(self, bytes: usize) -> f64 {
        match self {
            Rate::EVERY | Rate::PARTIAL => 1.0,
            rate => weight(bytes, rate.mean()),
        }
    }
}

/// How likely a byte is to get its block a stack: Mozilla's number. In Firefox a quarter of the blocks and four fifths of the
/// bytes then have one.
const PARTIAL_PROBABILITY: f64 = 0.003;

/// From now on, samples are drawn at this rate.
pub(crate) fn set_rate(rate: Rate) {
    CURRENT.store(rate.0, Relaxed);
}

/// The rate of the draws now.
#[inline]
pub(crate) fn rate() -> Rate {
    Rate(CURRENT.load(Relaxed))
}

/// A thread's draws.
pub(crate) struct Sampler {
    /// The bytes up to the next winner, that one included; 0 before the first draw.
    left: Cell<u64>,
    /// The rate that it was drawn at.
    rate: Cell<u8>,
    random: Cell<u64>,
}

impl Sampler {
    pub(crate) const fn new() -> Self {
        Sampler { left: Cell::new(0), rate: Cell::new(0), random: Cell::new(0) }
    }

    /// Counts down a block of this many bytes, if the next winner is known and is not in it.
    #[inline]
    pub(crate) fn misses(&self, bytes: usize) -> bool {
        let left = self.left.get();
        let misses = left > bytes as u64 && self.rate.get() == rate().0;
        if misses {
            self.left.set(left - bytes as u64);
        }
        misses
    }

    /// Whether a block of this many bytes is in the sample. `seed` tells threads apart.
    #[inline]
    pub(crate) fn takes(&self, bytes: usize, seed: impl FnOnce() -> u32) -> bool {
        !self.misses(bytes) && self.draws(bytes as u64, rate(), seed)
    }

    /// The rate of the last draw.
    #[inline]
    pub(crate) fn rate(&self) -> Rate {
        Rate(self.rate.get())
    }

    #[cold]
    fn draws(&self, bytes: u64, rate: Rate, seed: impl FnOnce() -> u32) -> bool {
        if self.random.get() == 0 {
            self.random.set(mixed(u64::from(seed())));
        }
        if self.left.get() == 0 || self.rate.get() != rate.0 {
            self.rate.set(rate.0);
            self.left.set(self.distance(rate));
            let left = self.left.get();
            if left > bytes {
                self.left.set(left - bytes);
                return false;
            }
        }
        // What the block has beyond the winner is not drawn again: the next distance begins with the next block.
        self.left.set(self.distance(rate));
        true
    }

    /// The bytes up to the next winner, itself included.
    fn distance(&self, rate: Rate) -> u64 {
        // xorshift64*: the state is never 0.
        let mut random = self.random.get();
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        self.random.set(random);
        let bits = random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        // In (0, 1].
        let uniform = (bits + 1) as f64 / (1_u64 << 53) as f64;
        (-uniform.ln() * rate.mean()) as u64 + 1
    }
}

/// Neighbouring numbers become unlike ones, and none becomes 0.
fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 30;
    mixed = mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^= mixed >> 27;
    mixed | 1
}

/// How many blocks like it a sampled block of this many bytes stands for.
fn weight(bytes: usize, mean: f64) -> f64 {
    -1.0 / (-(bytes as f64) / mean).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `count` blocks of this many bytes are taken.
    fn taken(sampler: &Sampler, bytes: usize, count: usize) -> usize {
        (0..count).filter(|_| sampler.takes(bytes, || 1)).count()
    }

    #[test]
    fn blocks_are_hit_as_often_as_their_sizes_say() {
        let _guard = CURRENT_IN_TESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mean = Rate::of_mean(NonZeroU64::new(65536).unwrap()).unwrap();
        assert_eq!(Rate::of_mean(NonZeroU64::new(65536).unwrap()), Ok(mean));
        for rate in [Rate::PARTIAL, mean] {
            set_rate(rate);
            let sampler = Sampler::new();
            for bytes in [16, 128, 1024, 65536, 1 << 20] {
                let count = 200_000;
                let hit = taken(&sampler, bytes, count) as f64;
                let weight = weight(bytes, rate.mean());
                // The number of hits is binomial; five standard deviations are exceeded once in two million tests, and
                // the seed is fixed.
                let chance = 1.0 / weight;
                let spread = (count as f64 * chance * (1.0 - chance)).sqrt();
                assert!(
                    (hit - count as f64 * chance).abs() <= 5.0 * spread + 1.0,
                    "{rate:?} {bytes}: {hit}"
                );
            }
        }
        set_rate(Rate::EVERY);
    }

    #[test]
    fn a_process_tells_seven_means_apart() {
        let means = Means::new();
        let rate = |bytes| means.rate_of(NonZeroU64::new(bytes).unwrap());
        for number in 1..8 {
            assert_eq!(rate(u64::from(number) * 1000), Ok(Rate(number)));
        }
        assert_eq!(rate(8000), Err(TooManyRates));
        assert_eq!(rate(7000).map(|rate| means.of(rate)), Ok(Some(7000)));
    }
}

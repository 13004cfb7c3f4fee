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
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use super::rate::SamplingRate;

/// The rate of the draws now.
static CURRENT: AtomicU8 = AtomicU8::new(SamplingRate::EVERY.number());

/// The rate of the draws is the process's: a test that sets it holds this.
#[cfg(test)]
pub(crate) static CURRENT_IN_TESTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// From now on, samples are drawn at this rate.
pub(crate) fn set_rate(rate: SamplingRate) {
    CURRENT.store(rate.number(), Relaxed);
}

/// The rate of the draws now.
#[inline]
pub(crate) fn rate() -> SamplingRate {
    SamplingRate::from_number(CURRENT.load(Relaxed))
}

/// A thread's draws.
pub(crate) struct Sampler {
    /// The bytes up to the next winner, that one included; 0 before the first draw.
    left: Cell<u64>,
    /// The rate that it was drawn at.
    rate: Cell<u8>,
    random: Random,
}

impl Sampler {
    pub(crate) const fn new() -> Self {
        Sampler { left: Cell::new(0), rate: Cell::new(0), random: Random::new() }
    }

    /// Counts down a block of this many bytes, if the next winner is known and is not in it.
    #[inline]
    pub(crate) fn skips(&self, bytes: usize) -> bool {
        let left = self.left.get();
        let misses = left > bytes as u64 && self.rate.get() == rate().number();
        if misses {
            self.left.set(left - bytes as u64);
        }
        misses
    }

    /// Whether a block of this many bytes is in the sample. `seed` tells threads apart.
    #[inline]
    pub(crate) fn samples(&self, bytes: usize, seed: impl FnOnce() -> u32) -> bool {
        !self.skips(bytes) && self.observer_sampler(bytes as u64, rate(), seed)
    }

    /// The rate of the last draw.
    #[inline]
    pub(crate) fn rate(&self) -> SamplingRate {
        SamplingRate::from_number(self.rate.get())
    }

    #[cold]
    fn observer_sampler(&self, bytes: u64, rate: SamplingRate, seed: impl FnOnce() -> u32) -> bool {
        if rate == SamplingRate::HELD {
            return false;
        }
        self.random.seed(seed);
        if self.left.get() == 0 || self.rate.get() != rate.number() {
            self.rate.set(rate.number());
            self.left.set(self.random.distance(rate.mean()));
            let left = self.left.get();
            if left > bytes {
                self.left.set(left - bytes);
                return false;
            }
        }
        // What the block has beyond the winner is not drawn again: the next distance begins with the next block.
        self.left.set(self.random.distance(rate.mean()));
        true
    }
}

/// A thread's draws for those who observe single allocations: for each block, and for its bytes.
pub(crate) struct ObserverSampler {
    /// The blocks up to the next that wins, that one included.
    blocks: Cell<u64>,
    /// The bytes, likewise.
    bytes: Cell<u64>,
    /// The rate that they were drawn at.
    rate: Cell<u8>,
    random: Random,
}

impl ObserverSampler {
    pub(crate) const fn new() -> Self {
        let (blocks, bytes) = (Cell::new(0), Cell::new(0));
        ObserverSampler {
            blocks,
            bytes,
            rate: Cell::new(SamplingRate::EVERY.number()),
            random: Random::new(),
        }
    }

    /// Whether a block of this many bytes is in the sample of this rate.
    pub(crate) fn samples(
        &self,
        bytes: usize,
        rate: SamplingRate,
        seed: impl FnOnce() -> u32,
    ) -> bool {
        if rate == SamplingRate::EVERY {
            return true;
        }
        if self.rate.replace(rate.number()) != rate.number() {
            // Another stream than the thread's sampler has.
            self.random.seed(|| !seed());
            self.draw_blocks(rate);
            self.draw_bytes(rate);
        }
        let (blocks_left, bytes_left) = (self.blocks.get(), self.bytes.get());
        let wins = [blocks_left <= 1, bytes_left <= bytes as u64];
        if wins[0] {
            self.draw_blocks(rate);
        } else {
            self.blocks.set(blocks_left - 1);
        }
        if wins[1] {
            self.draw_bytes(rate);
        } else {
            self.bytes.set(bytes_left - bytes as u64);
        }
        wins[0] || wins[1]
    }

    fn draw_blocks(&self, rate: SamplingRate) {
        // The number of trials up to a success is geometric: the whole part of an exponential of this mean, plus one.
        let mean = -1.0 / (-rate.probability().of_block).ln_1p();
        self.blocks.set(self.random.distance(mean));
    }

    fn draw_bytes(&self, rate: SamplingRate) {
        let is_drawn = rate.probability().mean.is_some();
        self.bytes.set(if is_drawn { self.random.distance(rate.mean()) } else { u64::MAX });
    }
}

/// Random numbers of a thread's own.
struct Random(Cell<u64>);

impl Random {
    const fn new() -> Self {
        Random(Cell::new(0))
    }

    /// Begins with this seed, unless it has begun.
    fn seed(&self, seed: impl FnOnce() -> u32) {
        if self.0.get() == 0 {
            self.0.set(mixed(u64::from(seed())));
        }
    }

    /// The steps up to the next winner, itself included, where they are this many on average.
    fn distance(&self, mean: f64) -> u64 {
        // xorshift64*: the state is never 0.
        let mut random = self.0.get();
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        self.0.set(random);
        let bits = random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        // In (0, 1].
        let uniform = (bits + 1) as f64 / (1_u64 << 53) as f64;
        ((-uniform.ln() * mean) as u64).saturating_add(1)
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

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::sample::rate::Probability;

    /// How many of `count` blocks of this many bytes are taken.
    fn taken(sampler: &Sampler, bytes: usize, count: usize) -> usize {
        (0..count).filter(|_| sampler.samples(bytes, || 1)).count()
    }

    #[test]
    fn blocks_are_hit_as_often_as_their_sizes_say() {
        let _guard = CURRENT_IN_TESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let probability = Probability::of_bytes(NonZeroU64::new(65536).unwrap());
        let mean = SamplingRate::of(probability).unwrap();
        assert_eq!(SamplingRate::of(probability), Ok(mean));
        for rate in [SamplingRate::PARTIAL, mean] {
            set_rate(rate);
            let sampler = Sampler::new();
            for bytes in [16, 128, 1024, 65536, 1 << 20] {
                let count = 200_000;
                let hit = taken(&sampler, bytes, count) as f64;
                // The number of hits is binomial; five standard deviations are exceeded once in two million tests, and
                // the seed is fixed.
                let probability = 1.0 - (-(bytes as f64) / rate.mean()).exp();
                let spread = (count as f64 * probability * (1.0 - probability)).sqrt();
                assert!(
                    (hit - count as f64 * probability).abs() <= 5.0 * spread + 1.0,
                    "{rate:?} {bytes}: {hit}"
                );
            }
        }
        set_rate(SamplingRate::EVERY);
    }

    #[test]
    fn blocks_are_drawn_for_one_by_one_and_by_their_bytes() {
        let mean = NonZeroU64::new(20_000);
        for (of_block, mean) in [(0.0, None), (0.05, None), (0.5, None), (0.0, mean), (0.05, mean)]
        {
            let rate = SamplingRate::of(Probability { mean, of_block }).unwrap();
            let draws = ObserverSampler::new();
            for bytes in [16, 3000] {
                let count = 200_000;
                let hit = (0..count).filter(|_| draws.samples(bytes, rate, || 1)).count() as f64;
                let probability = 1.0 / rate.weight(bytes);
                // As below.
                let count = f64::from(count);
                let spread = (count * probability * (1.0 - probability)).sqrt();
                let off = (hit - count * probability).abs();
                assert!(off <= 5.0 * spread, "{of_block} {mean:?} {bytes}: {hit}");
            }
        }
        let draws = ObserverSampler::new();
        assert!((0..1000).all(|_| draws.samples(16, SamplingRate::EVERY, || 1)));
    }
}

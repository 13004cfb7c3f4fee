//! Geometric sampling: each byte is a trial, and a block is sampled if a trial on one of its bytes
//! succeeds.
//!
//! A thread counts down the bytes to its next success, so most blocks cost one subtraction. The
//! distance between successes is geometric. For a mean of R bytes, a block of n bytes is sampled
//! with probability 1 − e^(−n/R), independent of earlier blocks. Its weight is 1 / (1 − e^(−n/R)),
//! which makes weighted sums unbiased.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are far below 2^53, and the conversion from a float saturates"
)]

use std::cell::Cell;

use super::rate::{RateCell, SamplingRate};

/// The current rate of the samplers.
static CURRENT: RateCell = RateCell::new(SamplingRate::EVERY);

/// The rate is global: a test that sets it holds this lock.
#[cfg(test)]
pub(crate) static CURRENT_IN_TESTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Sets the rate of the samplers.
pub(crate) fn set_rate(rate: SamplingRate) {
    CURRENT.set(rate);
}

/// Returns the current rate of the samplers. After a change, a thread may draw once more at the
/// former rate.
#[inline]
pub(crate) fn rate() -> SamplingRate {
    CURRENT.get()
}

/// The sampler of a thread.
pub(crate) struct Sampler {
    /// The bytes up to and including the next success; 0 before the first draw.
    bytes_left: Cell<u64>,
    /// The rate that `bytes_left` was drawn at.
    rate: Cell<u8>,
    /// The bytes that the thread had allocated when `bytes_left` was set, as its counter has them.
    counted: Cell<u64>,
    random: Random,
}

impl Sampler {
    pub(crate) const fn new() -> Self {
        Sampler {
            bytes_left: Cell::new(0),
            rate: Cell::new(0),
            counted: Cell::new(0),
            random: Random::new(),
        }
    }

    /// Takes off the bytes that the thread has allocated without asking since the last call, which
    /// contain no success. `before` and `after` are the thread's counter without and with the
    /// block that [`samples`](Self::samples) decides on next.
    pub(crate) fn catch_up(&self, before: u64, after: u64) {
        let passed = before.wrapping_sub(self.counted.replace(after));
        let left = self.bytes_left.get();
        // If tracking was off meanwhile, the next success may lie behind. Another is drawn then:
        // distances are memoryless.
        self.bytes_left.set(left.saturating_sub(passed));
    }

    /// Returns the value of the thread's counter at the next success at this rate, if it is known.
    pub(crate) fn next_success(&self, rate: SamplingRate) -> Option<u64> {
        let is_drawn = self.rate.get() == rate.number() && self.bytes_left.get() > 0;
        is_drawn.then(|| self.counted.get().saturating_add(self.bytes_left.get()))
    }

    /// Skips a block of this many bytes, if the next success lies beyond it. Returns whether it
    /// did.
    fn skips(&self, bytes: usize) -> bool {
        let left = self.bytes_left.get();
        let is_skipped = left > bytes as u64 && self.rate.get() == rate().number();
        if is_skipped {
            self.bytes_left.set(left - bytes as u64);
        }
        is_skipped
    }

    /// Returns whether a block of this many bytes is sampled. `seed` differs between threads.
    #[inline]
    pub(crate) fn samples(&self, bytes: usize, seed: impl FnOnce() -> u32) -> bool {
        !self.skips(bytes) && self.draw(bytes as u64, rate(), seed)
    }

    /// Makes the next block a sampled one. Distances are memoryless, so samples stay unbiased.
    /// `counted` is the thread's counter.
    pub(crate) fn sample_next(&self, counted: u64) {
        if rate() != SamplingRate::SUSPENDED && rate() != SamplingRate::EVERY {
            self.rate.set(rate().number());
            self.bytes_left.set(1);
            self.counted.set(counted);
        }
    }

    /// Returns the rate of the last draw.
    #[inline]
    pub(crate) fn rate(&self) -> SamplingRate {
        SamplingRate::from_number(self.rate.get())
    }

    #[cold]
    fn draw(&self, bytes: u64, rate: SamplingRate, seed: impl FnOnce() -> u32) -> bool {
        if rate == SamplingRate::SUSPENDED {
            return false;
        }
        self.random.seed(seed);
        if self.bytes_left.get() == 0 || self.rate.get() != rate.number() {
            self.rate.set(rate.number());
            self.bytes_left.set(self.random.geometric(rate.mean()));
            let left = self.bytes_left.get();
            if left > bytes {
                self.bytes_left.set(left - bytes);
                return false;
            }
        }
        // The rest of the block has no trials: the next distance begins with the next block.
        self.bytes_left.set(self.random.geometric(rate.mean()));
        true
    }
}

/// The sampler of a thread for observers of single allocations: one trial per block, and one per
/// byte.
pub(crate) struct ObserverSampler {
    /// The blocks up to and including the next success.
    blocks: Cell<u64>,
    /// The bytes up to and including the next success.
    bytes: Cell<u64>,
    /// The rate that both were drawn at.
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

    /// Returns whether a block of this many bytes is sampled at this rate.
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
            // A different random sequence than the thread's `Sampler` has.
            self.random.seed(|| !seed());
            self.draw_blocks(rate);
            self.draw_bytes(rate);
        }
        let (blocks_left, bytes_left) = (self.blocks.get(), self.bytes.get());
        let hits = [blocks_left <= 1, bytes_left <= bytes as u64];
        if hits[0] {
            self.draw_blocks(rate);
        } else {
            self.blocks.set(blocks_left - 1);
        }
        if hits[1] {
            self.draw_bytes(rate);
        } else {
            self.bytes.set(bytes_left - bytes as u64);
        }
        hits[0] || hits[1]
    }

    fn draw_blocks(&self, rate: SamplingRate) {
        // The number of trials up to a success is geometric: the integral part of an exponential
        // variable with this mean, plus one.
        let mean = -1.0 / (-rate.probability().of_block).ln_1p();
        self.blocks.set(self.random.geometric(mean));
    }

    fn draw_bytes(&self, rate: SamplingRate) {
        let is_drawn = rate.probability().mean.is_some();
        self.bytes.set(if is_drawn { self.random.geometric(rate.mean()) } else { u64::MAX });
    }
}

/// The random number generator of a thread: xorshift64*.
struct Random(Cell<u64>);

impl Random {
    const fn new() -> Self {
        Random(Cell::new(0))
    }

    /// Seeds the generator, unless it is seeded.
    fn seed(&self, seed: impl FnOnce() -> u32) {
        if self.0.get() == 0 {
            self.0.set(mix(u64::from(seed())));
        }
    }

    /// Draws the number of trials up to and including the next success, with this mean.
    fn geometric(&self, mean: f64) -> u64 {
        // The state is never 0.
        let mut random = self.0.get();
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        self.0.set(random);
        let bits = random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        // In the interval (0, 1].
        let uniform = (bits + 1) as f64 / (1_u64 << 53) as f64;
        ((-uniform.ln() * mean) as u64).saturating_add(1)
    }
}

/// Mixes a seed, so that neighbouring seeds give different sequences. Never returns 0.
fn mix(seed: u64) -> u64 {
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

    /// Counts how many of `count` blocks of this many bytes are sampled.
    fn taken(sampler: &Sampler, bytes: usize, count: usize) -> usize {
        (0..count).filter(|_| sampler.samples(bytes, || 1)).count()
    }

    #[test]
    fn blocks_are_sampled_with_the_probability_of_their_size() {
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
                // The number of hits is binomial. Five standard deviations are exceeded once in two
                // million tests, and the seed is fixed.
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

    /// The indices of the blocks that a thread samples if it decides only at its stops, and is
    /// away for some blocks in the middle.
    fn taken_at_stops(
        rate: SamplingRate,
        sizes: &[u64],
        away: std::ops::Range<usize>,
    ) -> Vec<usize> {
        let sampler = Sampler::new();
        let (mut counted, mut stop, mut taken) = (0, 0, Vec::new());
        for (index, &size) in sizes.iter().enumerate() {
            let before = counted;
            counted += size;
            if counted < stop || away.contains(&index) {
                continue;
            }
            sampler.catch_up(before, counted);
            if sampler.samples(size as usize, || 1) {
                taken.push(index);
            }
            stop = sampler.next_success(rate).expect("it is drawn");
            assert!(stop > counted, "the next success is in a later block");
        }
        taken
    }

    #[test]
    fn a_thread_that_decides_only_at_its_stops_samples_the_same_blocks() {
        let _guard = CURRENT_IN_TESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mean = NonZeroU64::new(5000).expect("it is not zero");
        let rate = SamplingRate::of(Probability::of_bytes(mean)).expect("there is a number left");
        set_rate(rate);
        let sizes: Vec<u64> = (0..20_000_u64).map(|index| 16 + index * index % 700).collect();
        let sampler = Sampler::new();
        let every: Vec<usize> = (0..)
            .zip(&sizes)
            .filter(|(_, size)| sampler.samples(**size as usize, || 1))
            .map(|(index, _)| index)
            .collect();
        let at_stops = taken_at_stops(rate, &sizes, 0..0);
        let after_a_pause = taken_at_stops(rate, &sizes, 5000..9000);
        set_rate(SamplingRate::EVERY);
        assert_eq!(at_stops, every);
        assert!(every.len() > 1000, "{}", every.len());
        // Successes of the pause are lost, and none is made up for.
        let in_range = |taken: &[usize], range: std::ops::Range<usize>| {
            taken.iter().filter(|index| range.contains(index)).count()
        };
        assert_eq!(in_range(&after_a_pause, 0..5000), in_range(&every, 0..5000));
        assert_eq!(in_range(&after_a_pause, 5000..9000), 0);
        let (rest, expected) =
            (in_range(&after_a_pause, 9000..20_000) as f64, 11_000.0 * 365.5 / 5000.0);
        // Five standard deviations of a Poisson distribution, at most.
        assert!((rest - expected).abs() < 5.0 * expected.sqrt(), "{rest} {expected}");
    }

    #[test]
    fn the_next_block_is_sampled_if_blocks_are_sampled_at_all() {
        let _guard = CURRENT_IN_TESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let probability = Probability::of_bytes(NonZeroU64::new(1 << 40).unwrap());
        set_rate(SamplingRate::of(probability).unwrap());
        let sampler = Sampler::new();
        assert_eq!(taken(&sampler, 16, 1000), 0);
        for _ in 0..3 {
            sampler.sample_next(0);
            assert_eq!(taken(&sampler, 16, 1), 1);
            assert_eq!(taken(&sampler, 16, 1000), 0);
        }
        set_rate(SamplingRate::SUSPENDED);
        sampler.sample_next(0);
        assert_eq!(taken(&sampler, 16, 1000), 0);
        set_rate(SamplingRate::EVERY);
    }

    #[test]
    fn the_first_block_of_a_thread_is_sampled_as_often_as_any_other() {
        let _guard = CURRENT_IN_TESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mean = NonZeroU64::new(4).unwrap();
        let rate = SamplingRate::of(Probability::of_bytes(mean)).unwrap();
        set_rate(rate);
        let count = 20_000;
        for bytes in [1, 3] {
            let first = |seed| Sampler::new().samples(bytes, || seed);
            let hit = (0..count).filter(|seed| first(*seed)).count() as f64;
            let probability = 1.0 / rate.weight(bytes);
            // As in the test above, five standard deviations.
            let count = f64::from(count);
            let spread = (count * probability * (1.0 - probability)).sqrt();
            assert!((hit - count * probability).abs() <= 5.0 * spread, "{bytes}: {hit}");
        }
        set_rate(SamplingRate::EVERY);
    }

    #[test]
    fn seeds_are_mixed_as_by_splitmix64() {
        let mixed = [0, 1, 2, u64::MAX].map(mix);
        let expected = [
            0x6f68_2616_bae3_641b,
            0x2a94_fcba_9e2b_a361,
            0xf1c3_dd7d_1aa3_80fb,
            0x0000_0000_0000_0001,
        ];
        assert_eq!(mixed, expected);
    }

    #[test]
    fn blocks_are_sampled_by_count_and_by_bytes() {
        let mean = NonZeroU64::new(20_000);
        for (of_block, mean) in [(0.0, None), (0.05, None), (0.5, None), (0.0, mean), (0.05, mean)]
        {
            let rate = SamplingRate::of(Probability { mean, of_block }).unwrap();
            let sampler = ObserverSampler::new();
            for bytes in [16, 3000] {
                let count = 200_000;
                let hit = (0..count).filter(|_| sampler.samples(bytes, rate, || 1)).count() as f64;
                let probability = 1.0 / rate.weight(bytes);
                // See the test above for the bound.
                let count = f64::from(count);
                let spread = (count * probability * (1.0 - probability)).sqrt();
                let off = (hit - count * probability).abs();
                assert!(off <= 5.0 * spread, "{of_block} {mean:?} {bytes}: {hit}");
            }
        }
        let sampler = ObserverSampler::new();
        assert!((0..1000).all(|_| sampler.samples(16, SamplingRate::EVERY, || 1)));
    }
}

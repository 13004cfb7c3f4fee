//! A test of the sampler on known blocks: estimates from its samples are unbiased, and their
//! stated standard error is correct.
#![expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]

use std::num::NonZeroU64;

use super::rate::{Probability, SamplingRate};
use super::sampler::{CURRENT_IN_TESTS, Sampler, set_rate};
use memreport_analysis::recording::{Block, Estimate};

/// Sizes of blocks and their counts: 3,070 blocks of 15.5 million bytes.
const MIX: [(usize, usize); 5] = [(16, 2000), (256, 800), (4096, 200), (65_536, 60), (1 << 20, 10)];

const RUNS: u32 = 400;

/// Estimates the bytes of all these blocks from one sample of them.
fn estimate(rate: SamplingRate, seed: u32) -> Estimate {
    let sampler = Sampler::new();
    let mut sum = Estimate::default();
    // Small and big blocks are interleaved, as in programs.
    for turn in 0..2000 {
        for (size, count) in MIX {
            let begins_at = 2000 / count;
            if turn % begins_at == 0 && turn / begins_at < count && sampler.samples(size, || seed) {
                let (requested, usable) = (size as u64, size as u64);
                let weight = rate.weight(size);
                let (number, site, allocated_at, freed) = (0, 1, 0, None);
                sum.add(&Block { number, site, requested, usable, weight, allocated_at, freed });
            }
        }
    }
    sum
}

#[test]
fn estimates_are_unbiased_and_state_their_error() {
    let _guard = CURRENT_IN_TESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let truth: f64 = MIX.iter().map(|(size, count)| (size * count) as f64).sum();
    for mean in [4096, 16_384, 131_072] {
        let rate = SamplingRate::of(Probability::of_bytes(NonZeroU64::new(mean).unwrap())).unwrap();
        set_rate(rate);
        let runs: Vec<Estimate> = (1..=RUNS).map(|seed| estimate(rate, seed)).collect();
        set_rate(SamplingRate::EVERY);
        let average =
            |of: &dyn Fn(&Estimate) -> f64| runs.iter().map(of).sum::<f64>() / f64::from(RUNS);
        let found = average(&|run| run.bytes);
        let spread = average(&|run| (run.bytes - truth).powi(2)).sqrt();
        let said = average(&|run| run.error().powi(2)).sqrt();
        // A block of n bytes with weight w adds n² (w − 1) to the variance.
        let variance = |(size, count): &(usize, usize)| {
            (size * size * count) as f64 * (rate.weight(*size) - 1.0)
        };
        let expected = MIX.iter().map(variance).sum::<f64>().sqrt();
        println!(
            "one byte in {mean}: {:.3} % of the truth on average of {RUNS} runs, ± {:.2} %; expected ± {:.2} %, said ± {:.2} %",
            100.0 * found / truth,
            100.0 * spread / truth,
            100.0 * expected / truth,
            100.0 * said / truth,
        );
        // A mean that is off by one percent is then not chance: that is at least four standard
        // errors of the mean.
        assert!(4.0 * expected / f64::from(RUNS).sqrt() < 0.01 * truth, "the runs are too few");
        assert!((found / truth - 1.0).abs() < 0.01, "{found} of {truth}");
        // The relative error of the spread of 400 runs is 1 in √800: four times that.
        assert!((spread / expected - 1.0).abs() < 0.14, "{spread} is not {expected}");
        assert!((said / expected - 1.0).abs() < 0.05, "{said} is not {expected}");
        // Of a normal distribution, 68 % lie within the standard error; of 400 runs that is 273 ±
        // 9.
        let near = runs.iter().filter(|run| (run.bytes - truth).abs() < run.error()).count();
        assert!((236..=310).contains(&near), "{near}");
    }
}

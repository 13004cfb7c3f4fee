//! Samples of blocks that are known, drawn by the sampler that hooks ask: what a recording makes of them is right on average, and
//! as far off as it says.
#![expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]

use std::num::NonZeroU64;

use super::rate::{Chance, Rate};
use super::sampler::{CURRENT_IN_TESTS, Sampler, set_rate};
use memreport_analysis::recording::{Block, Estimate, Recording, Which};

/// Sizes of blocks, and how many there are: 3,070 blocks of 15.5 million bytes.
const MIX: [(usize, usize); 5] = [(16, 2000), (256, 800), (4096, 200), (65_536, 60), (1 << 20, 10)];

const RUNS: u32 = 400;

/// What a recording of all those blocks comes to, of which one run of the sampler has taken some.
fn estimate(rate: Rate, seed: u32) -> Estimate {
    let sampler = Sampler::new();
    let mut recording = Recording::default();
    // Small and big ones take turns, as in programs.
    for turn in 0..2000 {
        for (size, count) in MIX {
            let begins_at = 2000 / count;
            if turn % begins_at == 0 && turn / begins_at < count && sampler.takes(size, || seed) {
                let (requested, usable) = (size as u64, size as u64);
                let weight = rate.weight(size);
                let block = Block { site: 1, requested, usable, weight, born: 0, freed: None };
                recording.blocks.push(block);
            }
        }
    }
    recording.sum(Which::Allocated)
}

#[test]
fn estimates_are_right_on_average_and_as_far_off_as_they_say() {
    let _guard = CURRENT_IN_TESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let truth: f64 = MIX.iter().map(|(size, count)| (size * count) as f64).sum();
    for mean in [4096, 16_384, 131_072] {
        let rate = Rate::of(Chance::of_bytes(NonZeroU64::new(mean).unwrap())).unwrap();
        set_rate(rate);
        let runs: Vec<Estimate> = (1..=RUNS).map(|seed| estimate(rate, seed)).collect();
        set_rate(Rate::EVERY);
        let average =
            |of: &dyn Fn(&Estimate) -> f64| runs.iter().map(of).sum::<f64>() / f64::from(RUNS);
        let found = average(&|run| run.bytes);
        let spread = average(&|run| (run.bytes - truth).powi(2)).sqrt();
        let said = average(&|run| run.error().powi(2)).sqrt();
        // A block of n bytes that stands for w adds n² (w − 1) to the variance.
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
        // So a mean that is off by one percent is no chance: it is four standard errors of the mean, or many more.
        assert!(4.0 * expected / f64::from(RUNS).sqrt() < 0.01 * truth, "the runs are too few");
        assert!((found / truth - 1.0).abs() < 0.01, "{found} of {truth}");
        // The spread of 400 runs is known to 1 in √800: four times that.
        assert!((spread / expected - 1.0).abs() < 0.14, "{spread} is not {expected}");
        assert!((said / expected - 1.0).abs() < 0.05, "{said} is not {expected}");
        // Of a normal distribution, 68 % are nearer than the standard error; of 400 that is 273 ± 9.
        let near = runs.iter().filter(|run| (run.bytes - truth).abs() < run.error()).count();
        assert!((236..=310).contains(&near), "{near}");
    }
}

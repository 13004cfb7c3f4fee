//! The cost of a stack for each unwinder: 36 frames at the end of random paths.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::figure::{Figure, lines, median, table};
use crate::build;
use crate::failure::Failure;

/// The variants: a name, whether the program has frame pointers, the word for `$DMD`, and the
/// largest cost of a stack on a quiet machine in nanoseconds.
const VARIANTS: [(&str, bool, &str, f64); 4] = [
    ("frame pointers", true, "frame-pointers", 45.0),
    ("call frame information, program with frame pointers", true, "cfi", 130.0),
    ("call frame information, program without", false, "cfi", 130.0),
    ("the crate backtrace", true, "backtrace", f64::INFINITY),
];

/// Times all variants in turn, round by round.
pub(crate) fn run(is_quick: bool, out: &mut dyn Write) -> Result<bool, Failure> {
    let with = build::release("memreport-tests", "stacks")?;
    let without = if is_quick { None } else { Some(build_without()?) };
    if without.is_none() {
        writeln!(out, "not run: a program without frame pointers, which takes minutes to build")?;
    }
    let rounds = if is_quick { 7 } else { 31 };
    let mut costs: [Vec<f64>; VARIANTS.len()] = Default::default();
    let mut least = Vec::new();
    for _ in 0..rounds {
        for ((_, has_pointers, word, _), costs) in VARIANTS.iter().zip(&mut costs) {
            let program = if *has_pointers { Some(&with) } else { without.as_ref() };
            let Some(program) = program else { continue };
            let (cost, chain) = time(program, word)?;
            costs.push(cost);
            if *has_pointers {
                least.push(chain);
            }
        }
    }
    let variants = VARIANTS.iter().map(|&(name, _, _, target)| (name, target));
    let chain =
        [("for comparison: the chain of frame pointers, nothing checked or kept", f64::INFINITY)];
    let figures: Vec<Figure> = variants
        .chain(chain)
        .zip(costs.into_iter().chain([least]))
        .filter(|(_, costs)| !costs.is_empty())
        .map(|((name, target), costs)| Figure::new(name, costs).at_most(target, "ns"))
        .collect();
    let title = format!("Processor time of a stack of 36 frames ({rounds} interleaved rounds)");
    table(&title, &figures, out)?;
    Ok(lines(&figures, out)?)
}

/// Returns the median costs of a stack and of the bare frame-pointer walk in one run.
fn time(program: &Path, word: &str) -> Result<(f64, f64), Failure> {
    let output = Command::new(program)
        .args(["time", "15"])
        .env("DMD", format!("--unwinder={word}"))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let costs: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(cost, chain)| Some((cost.parse().ok()?, chain.parse().ok()?)))
        .collect();
    if !output.status.success() || costs.is_empty() {
        return Err(format!("{}: {text}{errors}", program.display()).into());
    }
    let (costs, chains) = costs.into_iter().unzip();
    Ok((median(costs).0, median(chains).0))
}

/// Builds the same program without frame pointers, which is cargo's default.
fn build_without() -> Result<PathBuf, Failure> {
    let folder = build::root().join("target/without-frame-pointers");
    let status = build::cargo()
        .args(["build", "--release", "--package=memreport-tests", "--bin=stacks"])
        .env("RUSTFLAGS", "-Cforce-frame-pointers=no")
        .env("CARGO_TARGET_DIR", &folder)
        .status()?;
    if !status.success() {
        return Err("the program could not be built without frame pointers".into());
    }
    Ok(folder.join("release/stacks"))
}

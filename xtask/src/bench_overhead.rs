//! What tracking costs: the same work on the system's allocator alone and with DMD, asleep and awake.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::bench::{Figure, median, report};
use crate::{Failure, build};

/// What is timed: a name, `$DMD`, and the ratio to the system's allocator that it may cost.
const VARIANTS: [(&str, Option<&str>, f64); 3] = [
    ("compiled in, asleep", None, 1.05),
    ("every block, no stacks", Some("--stacks=none"), 1.3),
    ("every block, full stacks", Some("--stacks=full"), 1.8),
];

/// Times all variants in turn, round by round, and compares them within a round: the machine's moods fall on all alike.
pub(crate) fn run(is_quick: bool, out: &mut dyn Write) -> Result<bool, Failure> {
    let system = build::release("memreport-tests", "workload-system")?;
    let tracked = build::release("memreport-tests", "workload-dmd")?;
    let (rounds, work) = if is_quick { (7, 10) } else { (31, 30) };
    let mut ratios: [Vec<f64>; VARIANTS.len()] = Default::default();
    for _ in 0..rounds {
        let alone = time(&system, None, work)?;
        for ((_, variable, _), ratios) in VARIANTS.iter().zip(&mut ratios) {
            ratios.push(time(&tracked, *variable, work)? / alone);
        }
    }
    let figures: Vec<Figure> = VARIANTS
        .iter()
        .zip(ratios)
        .map(|((name, _, target), ratios)| {
            let (value, interval) = median(ratios);
            Figure { name: (*name).to_owned(), value, interval, target: *target, unit: "x" }
        })
        .collect();
    let title = format!(
        "Processor time of JSON parsing, maps and shared nodes, as ratios to the system's allocator alone \
         ({rounds} interleaved rounds)"
    );
    Ok(report(&title, &figures, out)?)
}

/// The nanoseconds of processor time that the work took.
fn time(program: &PathBuf, variable: Option<&str>, work: u32) -> Result<f64, Failure> {
    let mut command = Command::new(program);
    command.arg(work.to_string()).env_remove("DMD");
    if let Some(variable) = variable {
        command.env("DMD", variable);
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(
            format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)).into()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

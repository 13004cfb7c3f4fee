//! The time of a census of a big heap with its collection, and the pauses of other threads
//! meanwhile.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench::figure::{Figure, lines, table};
use crate::build;
use crate::failure::Failure;

/// The figures: a name, the target for five million blocks, and the unit.
const FIGURES: [(&str, Option<f64>, &str); 9] = [
    // Processor time; wall time is the same where nothing else runs.
    ("total", Some(0.8), "s"),
    ("total by the clock", None, "s"),
    ("measuring", None, "s"),
    ("walk and grouping", None, "s"),
    ("sort and merge of marks", None, "s"),
    ("census", None, "s"),
    ("throughput beside it", None, "x"),
    ("longest pause beside it", None, "ms"),
    ("longest pause beside a loop", None, "ms"),
];

/// Runs `cargo xtask bench census [--quick]`. Returns `false` when a target is missed.
pub(crate) fn run(is_quick: bool, out: &mut dyn Write) -> Result<bool, Failure> {
    let (count, rounds) = if is_quick { (500_000, 5) } else { (5_000_000, 11) };
    let program = build::release("memreport-tests", "workload-census")?;
    let mut command = Command::new(program);
    command.args([count, rounds].map(|number: u32| number.to_string())).env("DMD", "1");
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err("the program of live blocks failed".into());
    }
    let rounds: Vec<Value> = String::from_utf8(output.stdout)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let scale = f64::from(count) / 5e6;
    let figures = FIGURES.map(|(name, target, unit)| {
        let values = rounds.iter().filter_map(|round| round[name].as_f64()).collect();
        let target = target.map(|target| target * scale);
        Figure::new(name, values).at_most(target, unit)
    });
    let blocks = rounds.first().and_then(|round| round["blocks"].as_i64()).ok_or("no round")?;
    writeln!(
        out,
        "{blocks} live blocks by reporter, then type, then stack; another thread allocates"
    )?;
    table("census", &figures, out)?;
    Ok(lines(&figures, out)?)
}

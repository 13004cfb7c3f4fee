//! Instructions per replaced block, counted by valgrind: a figure without noise, though not a time.

use std::path::Path;
use std::process::Command;

use super::programs::Programs;
use super::rounds::{Effort, reason};
use super::variants::{Kind, Program, SYSTEM, VARIANTS, Variant};
use crate::bench::figure::Figure;
use crate::failure::Failure;

/// The number of replaced blocks. The start and the filling of the heap are counted apart and
/// subtracted.
const OPERATIONS: u32 = 20_000;

/// The number of live blocks. Few, since caches do not matter here and valgrind is slow.
const LIVE: &str = "5000";

pub(crate) fn measure(programs: &Programs, _effort: Effort) -> Result<Vec<Figure>, Failure> {
    let kind = Kind::Churn(1);
    let per_operation = |variant: &Variant| -> Result<f64, String> {
        let path = programs.of(variant.program, kind).ok_or("there is no such program")??;
        let (none, all) = (count(path, variant, 0)?, count(path, variant, OPERATIONS)?);
        Ok((all - none) / f64::from(OPERATIONS))
    };
    let system = match per_operation(&SYSTEM) {
        Ok(system) => system,
        Err(why) => return Ok(vec![Figure::not_run("a replaced block", why)]),
    };
    let mut figures = vec![Figure::new("system, a replaced block", vec![system]).at_most(None, "")];
    let is_ours =
        |variant: &&Variant| matches!(variant.program, Program::Dmd | Program::FramePointers);
    for variant in VARIANTS.iter().filter(is_ours) {
        let name = format!("{}, added", variant.name);
        figures.push(match per_operation(variant) {
            Ok(count) => Figure::new(name, vec![count - system]).at_most(None, ""),
            Err(why) => Figure::not_run(name, why),
        });
    }
    Ok(figures)
}

/// Returns the number of instructions of a whole run.
fn count(path: &Path, variant: &Variant, operations: u32) -> Result<f64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(path);
    command.args(["churn", &operations.to_string(), "1", LIVE]);
    command.env_remove("DMD").envs(variant.variable);
    let output = command.output().map_err(|_| "valgrind is not installed".to_owned())?;
    let message = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(reason(&message).unwrap_or_else(|| "it failed".to_owned()));
    }
    let collected = message.lines().find_map(|line| line.split_once("Collected :"));
    let count = collected.and_then(|(_, count)| count.trim().parse().ok());
    count.ok_or_else(|| "valgrind printed no number of instructions".to_owned())
}

//! Programs of the workspace's tests, built for another system. They compare stacks with the
//! reference unwinder's, and the books after each operation of an allocator.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use super::{Platform, cargo_for, runner};
use crate::build;
use crate::failure::Failure;

/// The stacks that are compared for each unwinder.
const STACKS: &str = "20000";

const UNWINDERS: [&str; 2] = ["cfi", "frame-pointers"];

/// The modes in which the books are compared: each kind of table.
const MODES: [&str; 5] =
    ["--stacks=none", "--stacks=full", "--mode=cumulative", "--mode=scan", "--stacks=partial"];

/// Builds the programs and runs them. Returns whether all agree.
pub(super) fn run(platform: &Platform, out: &mut dyn Write) -> Result<bool, Failure> {
    let name = platform.name;
    let stacks = built(platform, "stacks")?;
    let mut holds = true;
    for unwinder in UNWINDERS {
        let mut command = runner(platform, &stacks);
        command.args(["check", STACKS, "1"]).env("DMD", format!("--unwinder={unwinder}"));
        let output = command.stderr(Stdio::inherit()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().filter(|line| {
            let is_result = ["unwinder: ", "compared: ", "equal but "]
                .iter()
                .any(|word| line.starts_with(word));
            is_result || !output.status.success()
        });
        let said = lines.collect::<Vec<_>>().join("; ");
        let verdict = if output.status.success() { "" } else { "FAILED: " };
        writeln!(out, "{name}, stacks, --unwinder={unwinder}: {verdict}{said}")?;
        holds &= output.status.success();
    }
    let books = built(platform, "allocators-system")?;
    for mode in MODES {
        let status = runner(platform, &books).env("DMD", mode).status()?;
        let verdict = if status.success() { "agree" } else { "FAILED" };
        writeln!(out, "{name}, books, {mode}: {verdict}")?;
        holds &= status.success();
    }
    Ok(holds)
}

fn built(platform: &Platform, program: &str) -> Result<PathBuf, Failure> {
    let mut cargo = cargo_for(platform, &["build", "--package", "memreport-tests"]);
    build::executable(&mut cargo, program)
}

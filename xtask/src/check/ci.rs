//! The steps that must pass before a change lands, each a command that can be run by hand.

use std::io::Write;
use std::process::Command;

use super::{features, tidy};
use crate::build;
use crate::failure::Failure;

type Step = (&'static str, &'static [&'static str]);

const FORMAT: Step = ("the code is formatted", &["fmt", "--all", "--check"]);
const LINTS: Step = (
    "clippy reports nothing",
    &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
);
const TESTS: Step = ("the tests pass", &["test", "--workspace"]);
const ALLOCATORS: Step = (
    "the balance is exact on every inner allocator, as are its own statistics",
    &[
        "test",
        "-p",
        "memreport-tests",
        "--all-features",
        "--test",
        "allocators",
        "--test",
        "resident",
    ],
);
const DOCS: Step = ("the docs build", &["doc", "--workspace", "--no-deps", "--all-features"]);

/// Checks the models of shared state under every interleaving.
///
/// They need a build of their own, in which loom replaces the atomics.
fn models(out: &mut dyn Write) -> Result<bool, Failure> {
    const ARGUMENTS: [&str; 6] = ["test", "-p", "memreport-dmd", "--lib", "--", "models"];
    writeln!(out, "\n# the models hold: RUSTFLAGS=\"--cfg loom\" cargo {}", ARGUMENTS.join(" "))?;
    let mut cargo = build::cargo();
    cargo.args(ARGUMENTS).env("RUSTFLAGS", "--cfg loom");
    cargo.env("CARGO_TARGET_DIR", build::root().join("target/loom"));
    let holds = cargo.status()?.success();
    if !holds {
        writeln!(out, "\nFAILED: the models hold")?;
    }
    Ok(holds)
}

/// Runs the steps before every commit.
pub(crate) fn pre_commit(out: &mut dyn Write) -> Result<bool, Failure> {
    Ok(steps(&[FORMAT], out)?
        && house_rules(out)?
        && steps(&[LINTS, TESTS], out)?
        && all_holds(out)?)
}

/// Runs the steps before a change lands.
pub(crate) fn ci(out: &mut dyn Write) -> Result<bool, Failure> {
    Ok(steps(&[FORMAT], out)?
        && house_rules(out)?
        && steps(&[LINTS, TESTS, ALLOCATORS, DOCS], out)?
        && features::without_std(out)?
        && features::rust_version(out)?
        && models(out)?
        && miri(out)?
        && all_holds(out)?)
}

/// Checks every rule of `cargo xtask tidy`.
fn house_rules(out: &mut dyn Write) -> Result<bool, Failure> {
    writeln!(out, "\n# the house rules hold: cargo xtask tidy")?;
    let holds = tidy::run(&[], out)?;
    if !holds {
        writeln!(out, "\nFAILED: the house rules hold")?;
    }
    Ok(holds)
}

fn steps(steps: &[Step], out: &mut dyn Write) -> Result<bool, Failure> {
    for (what, arguments) in steps {
        writeln!(out, "\n# {what}: cargo {}", arguments.join(" "))?;
        let mut cargo = build::cargo();
        cargo.args(*arguments).env("RUSTDOCFLAGS", "-D warnings");
        if !cargo.status()?.success() {
            writeln!(out, "\nFAILED: {what}")?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs the tests of the tables under Miri, if the toolchain has it.
fn miri(out: &mut dyn Write) -> Result<bool, Failure> {
    const TABLES: [&str; 5] = ["blocks::", "entry::", "records::", "interner::", "numbers::"];
    let toolchain = |arguments: &[&str]| {
        let mut command = Command::new("rustup");
        command
            .args(["run", "nightly", "cargo", "miri"])
            .args(arguments)
            .current_dir(build::root());
        command
    };
    let is_there = toolchain(&["--version"]).output().is_ok_and(|output| output.status.success());
    if !is_there {
        writeln!(
            out,
            "\nnot run: the tables under Miri, which is not in the nightly toolchain here"
        )?;
        return Ok(true);
    }
    writeln!(out, "\n# the tables under Miri")?;
    let mut arguments = vec!["test", "-p", "memreport-dmd", "--lib", "--"];
    arguments.extend(TABLES);
    Ok(toolchain(&arguments)
        .env("CARGO_TARGET_DIR", build::root().join("target/miri"))
        .status()?
        .success())
}

fn all_holds(out: &mut dyn Write) -> Result<bool, Failure> {
    writeln!(out, "\nall of it holds")?;
    Ok(true)
}

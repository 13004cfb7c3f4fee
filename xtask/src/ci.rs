//! What must hold before a change lands: each step is a command that anybody can run by hand.

use std::io::Write;

use crate::{Failure, build};

type Step = (&'static str, &'static [&'static str]);

const FORMAT: Step = ("the code is formatted", &["fmt", "--all", "--check"]);
const LINTS: Step = (
    "clippy has nothing to say",
    &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
);
const TESTS: Step = ("the tests pass", &["test", "--workspace"]);
const ALLOCATORS: Step = (
    "the books agree on every inner allocator",
    &["test", "--package", "memreport-tests", "--all-features", "--test", "allocators"],
);
const DOCS: Step = ("the docs build", &["doc", "--workspace", "--no-deps", "--all-features"]);

/// Before every commit.
pub(crate) fn pre_commit(out: &mut dyn Write) -> Result<bool, Failure> {
    steps(&[FORMAT, LINTS, TESTS], out)
}

/// Before a change lands.
pub(crate) fn ci(out: &mut dyn Write) -> Result<bool, Failure> {
    steps(&[FORMAT, LINTS, TESTS, ALLOCATORS, DOCS], out)
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
    writeln!(out, "\nall of it holds")?;
    Ok(true)
}

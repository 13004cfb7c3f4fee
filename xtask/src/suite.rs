//! `cargo xtask suite [N]`: a crate of two hundred tests that check their memory, under
//! `cargo test` and nextest, N times each.
//!
//! The crate is `xtask/suite`. Its tests run in parallel, and allocate, panic, lock and start
//! threads. The ten with a planted defect must fail with a message that names the defect, and the
//! others must pass, the same in each run.

mod outcome;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use self::outcome::{Outcome, PLANTED};
use crate::build;
use crate::failure::Failure;

/// The number of tests of the crate, with those that fail.
const TESTS: usize = 200;

/// A way to run the tests.
#[derive(Clone, Copy)]
struct Runner {
    name: &'static str,
    words: &'static [&'static str],
}

/// A process for each test binary with as many threads as the machine has cores, the same with
/// many more threads, one test after another, and a process for each test.
const RUNNERS: [Runner; 4] = [
    Runner { name: "cargo test", words: &["test"] },
    Runner { name: "cargo test, 16 threads", words: &["test", "--", "--test-threads=16"] },
    Runner { name: "cargo test, 1 thread", words: &["test", "--", "--test-threads=1"] },
    Runner { name: "cargo nextest run", words: &["nextest", "run"] },
];

impl Runner {
    /// Returns cargo with the words of this runner, so that it runs all tests.
    fn command(self) -> Command {
        let mut cargo = build::cargo();
        cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("suite"));
        let options = self.words.iter().position(|word| *word == "--").unwrap_or(self.words.len());
        cargo.args(&self.words[..options]).arg("--no-fail-fast").args(&self.words[options..]);
        // Backtraces would hide the messages, and tests must not depend on them.
        cargo.env("RUST_BACKTRACE", "0").env_remove("DMD").stdin(Stdio::null());
        cargo
    }

    /// Returns whether cargo has this command, if it is not its own.
    fn exists(self) -> bool {
        if self.words[0] == "test" {
            return true;
        }
        let mut version = build::cargo();
        version.args([self.words[0], "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    }
}

/// Runs the check. Returns `false` if a test has another outcome than it must have.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let runs: usize = match args {
        [] => 5,
        [runs] => runs.parse()?,
        _ => return Err("usage: cargo xtask suite [N]".into()),
    };
    let mut holds = true;
    for runner in RUNNERS {
        let Runner { name, .. } = runner;
        if !runner.exists() {
            writeln!(out, "{name}: not run: there is no cargo-nextest (https://nexte.st)")?;
            continue;
        }
        let mut defects = 0;
        for number in 1..=runs {
            let output = runner.command().output()?;
            let printed = [output.stdout, output.stderr].concat();
            let outcome = Outcome::of(&String::from_utf8_lossy(&printed));
            for defect in outcome.defects() {
                writeln!(out, "{name}, run {number}: {defect}")?;
                defects += 1;
            }
            if outcome.tests() == 0 {
                out.write_all(&printed)?;
                return Ok(false);
            }
        }
        let planted = PLANTED.len();
        let passed = TESTS - planted;
        writeln!(
            out,
            "{name}: {runs} runs of {passed} tests that pass and {planted} that name their defect: {}",
            if defects == 0 { "all of it holds" } else { "FAILED" }
        )?;
        holds &= defects == 0;
    }
    Ok(holds)
}

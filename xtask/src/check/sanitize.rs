//! Runs the tracker under Miri, `ThreadSanitizer` and `AddressSanitizer`.
//!
//! Miri runs the tests of the tables and of `Ops`, with several schedules of threads. The
//! sanitizers run the program `stress`, with a standard library that they instrument too. Each
//! must first find a planted defect (`dmd/src/table/planted.rs`).

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Instant;

use super::ci::{filtered, unmatched};
use crate::build;
use crate::failure::Failure;

/// The values of `$DMD`, with further arguments of the program.
pub(crate) const MODES: [(&str, &[&str]); 6] = [
    ("--stacks=none", &[]),
    ("--stacks=full", &[]),
    ("--stacks=partial", &[]),
    ("--mode=cumulative", &[]),
    ("--mode=scan", &[]),
    ("--stacks=full", &["toggle"]),
];

/// The modules of `dmd` whose tests run under Miri, as filters of tests.
pub(super) const TABLES: [&str; 10] = [
    "table::blocks::",
    "table::packed_block::",
    "table::records::",
    "mem::pages::",
    "mem::lazy_slice::",
    "mem::interner::",
    "mem::local_interner::",
    "event::ring::",
    "event::queue::",
    "collect::claims::",
];

/// The tests of `dmd`'s library, to which filters are added.
pub(super) const TESTS_OF_DMD: [&str; 5] = ["test", "-p", "memreport-dmd", "--lib", "--"];

/// The tests that measure values through `Ops`: from pointers, with sharing. The chain of a
/// hundred thousand nodes takes too long.
const TESTS_OF_OPS: [&str; 8] =
    ["test", "-p", "memreport", "--test", "this", "--", "--skip", "a_long_chain"];

/// A checker of undefined behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checker {
    Miri,
    Sanitizer(Sanitizer),
}

/// A sanitizer of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sanitizer {
    name: &'static str,
    /// The word of the compiler's option.
    word: &'static str,
    /// The planted defect, and a part of the message about it.
    defect: (&'static str, &'static str),
}

/// The checkers, with their words on the command line.
pub(super) const CHECKERS: [(&str, Checker); 3] = [
    ("miri", Checker::Miri),
    (
        "threads",
        Checker::Sanitizer(Sanitizer {
            name: "ThreadSanitizer",
            word: "thread",
            defect: ("two_threads_write_a_word", "ThreadSanitizer: data race"),
        }),
    ),
    (
        "addresses",
        Checker::Sanitizer(Sanitizer {
            name: "AddressSanitizer",
            word: "address",
            defect: ("a_freed_word_is_read", "AddressSanitizer: heap-use-after-free"),
        }),
    ),
];

/// The planted defects that Miri must reject, with a part of its message.
const DEFECTS_OF_MIRI: [(&str, &str); 2] = [
    ("two_threads_write_a_word", "Data race detected"),
    ("a_freed_word_is_read", "has been freed"),
];

/// The target that the sanitizers are built for. Naming it leaves build scripts as they are.
const TARGET: &str = "x86_64-unknown-linux-gnu";

const INSTALL: &str = "rustup toolchain install nightly --profile minimal -c miri -c rust-src";

/// The amount of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// The schedules of threads that Miri tries.
    pub(super) seeds: u32,
    /// The seconds of `stress` in each mode.
    pub(super) seconds: f64,
}

/// The result of a checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Accepts,
    Rejects,
    /// The toolchain lacks it.
    NotRun,
}

/// Runs `cargo xtask sanitize [miri|threads|addresses]`.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let chosen: Vec<Checker> = match args {
        [] => CHECKERS.map(|(_, checker)| checker).to_vec(),
        [word] => {
            CHECKERS.iter().filter(|(name, _)| name == word).map(|(_, checker)| *checker).collect()
        }
        _ => Vec::new(),
    };
    if chosen.is_empty() {
        return Err("usage: cargo xtask sanitize [miri|threads|addresses]".into());
    }
    let mut all_accept = true;
    for checker in chosen {
        let outcome = checker.check(Effort { seeds: 8, seconds: 10.0 }, out)?;
        let line = match outcome {
            Outcome::Accepts => "accepts all of it, and rejects what is planted",
            Outcome::Rejects => "FAILED",
            Outcome::NotRun => "not run",
        };
        writeln!(out, "\n{}: {line}", checker.name())?;
        all_accept &= outcome == Outcome::Accepts;
    }
    Ok(all_accept)
}

impl Checker {
    pub(super) fn name(self) -> &'static str {
        match self {
            Checker::Miri => "Miri",
            Checker::Sanitizer(sanitizer) => sanitizer.name,
        }
    }

    /// Runs the planted defects and then the tests, if the toolchain has what it needs.
    pub(super) fn check(self, effort: Effort, out: &mut dyn Write) -> Result<Outcome, Failure> {
        if !self.is_installed() {
            writeln!(out, "\nnot run: {} is missing: {INSTALL}", self.name())?;
            return Ok(Outcome::NotRun);
        }
        let start = Instant::now();
        let accepts = match self {
            Checker::Miri => miri(effort.seeds, out)?,
            Checker::Sanitizer(sanitizer) => sanitizer.check(effort.seconds, out)?,
        };
        writeln!(out, "{} took {} s", self.name(), start.elapsed().as_secs())?;
        Ok(if accepts { Outcome::Accepts } else { Outcome::Rejects })
    }

    /// Returns whether the nightly toolchain has what [`INSTALL`] installs.
    fn is_installed(self) -> bool {
        let succeeds =
            |mut command: Command| command.output().ok().filter(|output| output.status.success());
        let has_miri = succeeds(build::nightly(&["cargo", "miri", "--version"])).is_some();
        let root = succeeds(build::nightly(&["rustc", "--print", "sysroot"]));
        let root = root.map(|output| PathBuf::from(text(&output).trim()));
        let has_sources =
            root.is_some_and(|root| root.join("lib/rustlib/src/rust/library").is_dir());
        let is_supported =
            self == Checker::Miri || cfg!(all(target_arch = "x86_64", target_os = "linux"));
        has_miri && has_sources && is_supported
    }
}

impl Sanitizer {
    fn check(self, seconds: f64, out: &mut dyn Write) -> Result<bool, Failure> {
        writeln!(out, "\n# {}: the program `stress`, {seconds} s in each mode", self.name)?;
        let program = self.build()?;
        let (defect, message) = self.defect;
        let output = Command::new(&program).arg(defect).output()?;
        if !found(&output, message, out)? {
            writeln!(out, "\nFAILED: {} does not reject {defect}", self.name)?;
            return Ok(false);
        }
        for (variable, words) in MODES {
            let mut command = Command::new(&program);
            command.env("DMD", variable).arg(seconds.to_string()).args(words);
            let output = command.output()?;
            writeln!(out, "DMD={variable} {}: {}", words.join(" "), text(&output).trim_end())?;
            if !output.status.success() {
                writeln!(out, "\nFAILED: {} rejects `stress` with DMD={variable}", self.name)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Builds `stress` and returns its path.
    fn build(self) -> Result<PathBuf, Failure> {
        let mut build =
            build::nightly(&["cargo", "build", "-q", "-Zbuild-std", "--target", TARGET]);
        build.args(["-p", "memreport-stress"]);
        build.env("RUSTFLAGS", format!("-Zsanitizer={} --cfg planted -Awarnings", self.word));
        build.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        let folder = format!("target/sanitize-{}", self.word);
        build.env("CARGO_TARGET_DIR", build::root().join(folder));
        build::executable(&mut build, "stress")
    }
}

/// Runs the planted defects and then the tests under Miri.
fn miri(seeds: u32, out: &mut dyn Write) -> Result<bool, Failure> {
    for (defect, message) in DEFECTS_OF_MIRI {
        let test = format!("table::planted::{defect}");
        writeln!(out, "\n# Miri rejects a planted defect: {test}")?;
        let output = under_miri(1, &TESTS_OF_DMD).args(["--ignored", "--exact", &test]).output()?;
        if !found(&output, message, out)? {
            writeln!(out, "\nFAILED: Miri does not reject {defect}")?;
            return Ok(false);
        }
    }
    Ok(accepts(seeds, &TESTS_OF_DMD, &TABLES, out)? && accepts(seeds, &TESTS_OF_OPS, &[], out)?)
}

/// Returns whether a checker has rejected a program with this message, and prints the line.
fn found(output: &Output, message: &str, out: &mut dyn Write) -> Result<bool, Failure> {
    let printed = text(output);
    let line = printed.lines().find(|line| line.contains(message));
    writeln!(out, "{}", line.unwrap_or(&printed).trim())?;
    Ok(line.is_some() && !output.status.success())
}

/// Runs tests under Miri once for each seed. Fails if a filter matches none.
fn accepts(
    seeds: u32,
    tests: &[&str],
    filters: &[&str],
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let what = filtered(tests, filters);
    writeln!(out, "\n# under Miri, {seeds} seeds: cargo miri {what}")?;
    let start = Instant::now();
    let output = under_miri(seeds, tests).args(filters).output()?;
    let printed = text(&output);
    let unmatched = unmatched(filters, &printed);
    for filter in &unmatched {
        writeln!(out, "\nFAILED: no test matches `{filter}`")?;
    }
    // The output of the schedules is interleaved. Without filters nothing else shows that a test
    // ran at all.
    let ran = printed.matches("Trying seed").count() == usize::try_from(seeds)?
        && printed.contains(" passed; 0 failed")
        && !printed.contains("running 0 tests");
    let holds = output.status.success() && unmatched.is_empty() && ran;
    if holds {
        let passed = printed.split(" passed; 0 failed").next().unwrap_or_default();
        let tests = passed.split_whitespace().last().unwrap_or_default();
        let seconds = start.elapsed().as_secs();
        writeln!(out, "{tests} tests passed with {seeds} seeds in {seconds} s")?;
    } else {
        writeln!(out, "{printed}\nFAILED: Miri rejects a test of: cargo miri {what}")?;
    }
    Ok(holds)
}

/// Returns the command that runs tests under Miri, up to the filters.
fn under_miri(seeds: u32, tests: &[&str]) -> Command {
    let mut command = build::nightly(&["cargo", "miri"]);
    command.args(tests);
    // Without the aliasing rules: these visit every word of a table at each access, and the tests
    // would take hours. Races, freed memory and ranges are still checked.
    let flags = format!("-Zmiri-disable-stacked-borrows -Zmiri-many-seeds=0..{seeds}");
    command.env("MIRIFLAGS", flags);
    // One set of flags for all: the planted defects are ignored tests of the same program.
    command.env("RUSTFLAGS", "--cfg planted -Awarnings");
    command.env("CARGO_TARGET_DIR", build::root().join("target/miri"));
    command
}

/// Returns the printed text of a command.
fn text(output: &Output) -> String {
    let printed = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&printed).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_defect_is_planted() {
        let source = std::fs::read_to_string(build::root().join("dmd/src/table/planted.rs"));
        let source = source.expect("it is in the repository");
        let sanitizers = CHECKERS.iter().filter_map(|(_, checker)| match checker {
            Checker::Miri => None,
            Checker::Sanitizer(sanitizer) => Some(sanitizer.defect),
        });
        for (name, _) in DEFECTS_OF_MIRI.into_iter().chain(sanitizers) {
            assert!(source.contains(&format!("fn {name}()")), "{name}");
        }
        assert_eq!(source.matches("test, test").count(), DEFECTS_OF_MIRI.len());
    }
}

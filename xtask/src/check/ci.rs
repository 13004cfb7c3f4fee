//! The steps that must pass before a change lands, each a command that can be run by hand.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::sanitize::{CHECKERS, Effort, Outcome, TESTS_OF_DMD};
use super::{features, tidy};
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

pub(super) type Step = (&'static str, &'static [&'static str]);

const FORMAT: Step = ("the code is formatted", &["fmt", "--all", "--check"]);
const LINTS: Step = (
    "clippy reports nothing",
    &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
);
/// The features build all inner allocators, from C and C++.
const TESTS: Step = (
    "the tests pass, on every inner allocator",
    &[
        "test",
        "--workspace",
        "--features=memreport-tests/jemalloc,memreport-tests/mimalloc,memreport-tests/snmalloc",
    ],
);
/// The tests that take longest. The others that are ignored are programs that tests start.
const SLOW_TESTS: Step = (
    "the slow tests pass",
    &[
        "test",
        "--workspace",
        "--features=memreport-tests/jemalloc,memreport-tests/mimalloc,memreport-tests/snmalloc",
        "--tests",
        "--",
        "--ignored",
        "--skip",
        "subject_",
    ],
);
/// The programs of [`TESTS`], which are started while nothing else is compiled.
const BUILD: Step = (
    "the tests build",
    &[
        "test",
        "--workspace",
        "--features=memreport-tests/jemalloc,memreport-tests/mimalloc,memreport-tests/snmalloc",
        "--no-run",
        "--quiet",
    ],
);
/// The libraries that programs link, with snmalloc built without cmake. All docs are built at
/// night.
#[rustfmt::skip]
const DOCS: Step = (
    "the docs of the libraries build",
    &["doc", "--no-deps", "--all-features", "--features=snmalloc-rs/build_cc", "-p", "memreport", "-p", "memreport-derive", "-p", "memreport-dmd"],
);
pub(super) const ALL_DOCS: Step =
    ("all docs build", &["doc", "--workspace", "--no-deps", "--all-features"]);

/// The modules of `dmd` with models of shared state, as filters of tests.
const MODELS: [&str; 7] = [
    "event::models::",
    "mem::models::",
    "sample::models::",
    "stack::models::",
    "table::models::",
    "table::blocks::sampled::models::",
    "table::blocks::huge::models::",
];

/// The work of the checkers here: all within two minutes, besides their builds.
const EFFORT: Effort = Effort { seeds: 2, seconds: 1.0 };

/// Checks the models of shared state under every interleaving.
///
/// They need a build of their own, in which loom replaces the atomics.
fn models(out: &mut dyn Write) -> Result<bool, Failure> {
    writeln!(
        out,
        "\n# the models hold: RUSTFLAGS=\"--cfg loom\" cargo {}",
        filtered(&TESTS_OF_DMD, &MODELS)
    )?;
    let mut cargo = build::cargo();
    cargo.env("RUSTFLAGS", "--cfg loom");
    cargo.env("CARGO_TARGET_DIR", build::root().join("target/loom"));
    // The models run millions of interleavings: optimised, they take a third of the time.
    for package in ["memreport-dmd", "loom", "generator"] {
        cargo.arg("--config").arg(format!("profile.dev.package.{package}.opt-level=1"));
    }
    cargo.args(["--config", "profile.dev.debug=false"]);
    let holds = run_filtered(&mut cargo, &MODELS, out)?;
    if !holds {
        writeln!(out, "\nFAILED: the models hold")?;
    }
    Ok(holds)
}

pub(super) fn filtered(tests: &[&str], filters: &[&str]) -> String {
    [tests, filters].concat().join(" ")
}

/// Runs the tests of `dmd` that match a filter. Fails if a filter matches none.
fn run_filtered(
    cargo: &mut Command,
    filters: &[&str],
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let output = cargo.args(TESTS_OF_DMD).args(filters).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    out.write_all(text.as_bytes())?;
    let unmatched = unmatched(filters, &text);
    for filter in &unmatched {
        writeln!(out, "\nFAILED: no test matches `{filter}`")?;
    }
    Ok(output.status.success() && unmatched.is_empty())
}

/// Returns the filters that no test in the output of a test run matches.
pub(super) fn unmatched<'name>(filters: &[&'name str], output: &str) -> Vec<&'name str> {
    let tests: Vec<&str> =
        output.lines().filter_map(|line| line.trim_start().strip_prefix("test ")).collect();
    let has_none = |filter: &&str| !tests.iter().any(|test| test.contains(filter));
    filters.iter().copied().filter(has_none).collect()
}

/// Runs the steps before every commit.
pub(crate) fn pre_commit(out: &mut dyn Write) -> Result<bool, Failure> {
    Ok(steps(&[FORMAT], out)?
        && house_rules(out)?
        && steps(&[LINTS, TESTS], out)?
        && all_holds(&[], out)?)
}

/// Runs the steps before a change lands, and prints the time that each took.
pub(crate) fn ci(out: &mut dyn Write) -> Result<bool, Failure> {
    let mut times = Times::default();
    let mut holds = times.of("format", out, |out| steps(&[FORMAT], out))?
        && times.of("tidy", out, house_rules)?
        && times.of("clippy", out, |out| steps(&[LINTS], out))?
        && times.of("build", out, |out| steps(&[BUILD], out))?;
    if holds {
        let others = Others::start()?;
        let pass = times.of("tests", out, |out| steps(&[TESTS], out))?
            & times.of("slow tests", out, |out| steps(&[SLOW_TESTS], out))?;
        holds = times.of("then the others", out, |out| others.finish(out))? && pass;
    }
    let mut not_run = Vec::new();
    for (_, checker) in CHECKERS {
        holds = holds
            && times.of(checker.name(), out, |out| {
                let outcome = checker.check(EFFORT, out)?;
                if outcome == Outcome::NotRun {
                    not_run.push(checker.name());
                }
                Ok(outcome != Outcome::Rejects)
            })?;
    }
    writeln!(out, "\n{times}")?;
    if holds { all_holds(&not_run, out) } else { Ok(false) }
}

/// Runs the steps that `ci` runs beside the tests, most of which wait for other programs.
pub(crate) fn beside_tests(out: &mut dyn Write) -> Result<bool, Failure> {
    let mut times = Times::default();
    let holds = times.of("docs", out, |out| steps(&[DOCS], out))?
        && times.of("without std", out, features::without_std)?
        && times.of("32-bit addresses", out, features::narrow_addresses)?
        && times.of("Rust versions", out, features::rust_version)?
        && times.of("models", out, models)?;
    writeln!(out, "\nbeside the tests: {times}")?;
    Ok(holds)
}

/// [`beside_tests`] in another process, which prints into a file until the tests are done.
struct Others {
    process: Child,
    folder: Scratch,
}

impl Others {
    fn start() -> Result<Self, Failure> {
        let folder = Scratch::new()?;
        let printed = File::create(folder.0.join("printed"))?;
        let mut this = Command::new(std::env::current_exe()?);
        this.args(["ci", "beside-tests"]).stdin(Stdio::null());
        let process = this.stderr(printed.try_clone()?).stdout(printed).spawn()?;
        Ok(Others { process, folder })
    }

    /// Waits for the end, and writes what was printed.
    fn finish(mut self, out: &mut dyn Write) -> Result<bool, Failure> {
        let status = self.process.wait()?;
        out.write_all(&fs::read(self.folder.0.join("printed"))?)?;
        Ok(status.success())
    }
}

/// The seconds that each step took.
#[derive(Default)]
struct Times(Vec<(&'static str, u64)>);

impl Times {
    /// Runs a step.
    fn of(
        &mut self,
        name: &'static str,
        out: &mut dyn Write,
        step: impl FnOnce(&mut dyn Write) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let begin = Instant::now();
        let holds = step(out)?;
        self.0.push((name, begin.elapsed().as_secs()));
        Ok(holds)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.0.iter().map(|(_, seconds)| seconds).sum();
        write!(out, "{all} s:")?;
        self.0.iter().try_for_each(|(name, seconds)| write!(out, " {name} {seconds}"))
    }
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

pub(super) fn steps(steps: &[Step], out: &mut dyn Write) -> Result<bool, Failure> {
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

fn all_holds(not_run: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    writeln!(out, "\n{}", last_line(not_run))?;
    Ok(true)
}

/// Returns the last line of a run that holds, with the steps that did not run.
fn last_line(not_run: &[&str]) -> String {
    let what = "everything that ran holds";
    match not_run {
        [] => what.to_owned(),
        _ => format!("{what}; not run: {}", not_run.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_matches_no_test_is_found() {
        let output = "running 1 test\ntest table::blocks::tests::a ... ok\n";
        assert_eq!(unmatched(&["table::blocks::", "entry::"], output), ["entry::"]);
        assert_eq!(unmatched(&["a"], "running 0 tests\n"), ["a"]);
    }

    #[test]
    fn times_are_added() {
        let times = Times(vec![("format", 1), ("tests", 200)]);
        assert_eq!(times.to_string(), "201 s: format 1 tests 200");
    }

    #[test]
    fn the_last_line_names_steps_that_did_not_run() {
        assert_eq!(last_line(&[]), "everything that ran holds");
        assert_eq!(last_line(&["Miri"]), "everything that ran holds; not run: Miri");
    }

    #[test]
    fn every_filter_is_a_module() {
        for filter in [&MODELS[..], &crate::check::sanitize::TABLES].concat() {
            let file = filter.trim_end_matches("::").replace("::", "/") + ".rs";
            assert!(build::root().join("dmd/src").join(&file).is_file(), "{file}");
        }
    }
}

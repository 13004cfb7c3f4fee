//! `cargo xtask mutants`: plants defects into a random sample of places, and prints those that no
//! test finds.
//!
//! cargo-mutants lists the defects. One build contains all of them behind switches, each test notes
//! the switches that it reaches, and for each defect the tests that reach it are run.
//! Mutants that behave as the original are listed in `mutants/equivalent.txt`, with the reason.

use std::fs;
use std::io::Write;
use std::time::Instant;

use crate::build;
use crate::failure::Failure;
use programs::MOST;
use record::Record;

mod list;
mod programs;
mod record;
mod run;
mod switches;
mod tree;

/// The packages whose code other people run.
const PACKAGES: [&str; 5] =
    ["memreport", "memreport-derive", "memreport-dmd", "memreport-analysis", "about-memory"];

/// Their folders.
const FOLDERS: [&str; 5] =
    ["memreport/", "memreport-derive/", "dmd/", "dmd-analysis/", "about-memory/"];

/// The tests that one build contains.
const ALL_TESTS: [&str; 9] = [
    "--package=memreport",
    "--package=memreport-dmd",
    "--package=memreport-analysis",
    "--package=about-memory",
    "--package=memreport-tests",
    "--package=dmd-preload",
    "--features=memreport/c-api,memreport-dmd/census,memreport-dmd/pprof,memreport-dmd/explain",
    "--lib",
    "--test=*",
];

/// The tests of whole programs that take seconds.
const NAMED: [&str; 10] = [
    "allocators",
    "calibrated",
    "classified",
    "fuzzed",
    "impls",
    "impls_of_crates",
    "log",
    "resident",
    "unbounded_channels",
    "whole",
];

const INSTALL: &str = "not run: cargo-mutants is missing: cargo install cargo-mutants --locked";

/// Mutants that no test can find: `FILE: MUTATION — REASON` or `FILE: MUTATION in `CODE` — REASON`
/// if only the places with this code are meant, a line each.
const EQUIVALENT: &str = include_str!("mutants/equivalent.txt");

/// Runs a sample, or those mutants of the last one again that were missed or not run, or prints the
/// sums of the last one. Returns `false` if too many are missed.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    if args == ["sums"] {
        return write_sums(&Record::read()?, out);
    }
    let mut version = build::cargo();
    version.args(["mutants", "--version"]);
    if !version.output().is_ok_and(|output| output.status.success()) {
        writeln!(out, "{INSTALL}")?;
        return Ok(false);
    }
    let start = Instant::now();
    let all = list::all()?;
    let mut record = match args {
        ["again"] => Record::read()?,
        _ => {
            let number = |place: usize, otherwise| {
                args.get(place).map_or(Ok(otherwise), |word| word.parse::<u64>())
            };
            let (count, seed) = (usize::try_from(number(0, 500)?)?, number(1, 1)?);
            let sample = list::sample(&all, count.min(MOST), seed);
            Record::new(seed, sample.into_iter().map(|mutant| mutant.name))
        }
    };
    run::run(&all, &mut record, out)?;
    writeln!(out, "the code has {} mutants; {} s", all.len(), start.elapsed().as_secs())?;
    write_sums(&record, out)
}

/// Writes the sums of each package and of all. Returns whether enough are caught.
fn write_sums(record: &Record, out: &mut dyn Write) -> Result<bool, Failure> {
    for (name, prefix) in PACKAGES.into_iter().zip(FOLDERS).chain([("all", "")]) {
        writeln!(out, "{name}: {}", record.sum(prefix))?;
    }
    writeln!(out, "seed {}, {} mutants", record.seed, record.outcomes.len())?;
    let holds = record.sum("").has_enough_caught();
    writeln!(out, "{}", if holds { "enough are caught" } else { "FAILED: too many are missed" })?;
    Ok(holds)
}

/// Returns the arguments that build a package's own tests.
fn own_tests(package: &str) -> &'static [&'static str] {
    match package {
        "memreport" => &["--package=memreport", "--all-features", "--lib", "--test=*"],
        // What the derive makes is tested where it is used.
        "memreport-derive" => &[
            "--package=memreport-derive",
            "--package=memreport",
            "--all-features",
            "--lib",
            "--test=*",
        ],
        "memreport-dmd" => {
            &["--package=memreport-dmd", "--features=census,pprof,explain", "--lib", "--test=*"]
        }
        "memreport-analysis" => &["--package=memreport-analysis", "--lib"],
        _ => &["--package=about-memory", "--lib", "--test=*"],
    }
}

/// Returns whether a mutant is in the list, which has no lines and columns, since these change.
fn is_equivalent(name: &str) -> bool {
    let line = || {
        let mut parts = name.split(':');
        let text = fs::read_to_string(build::root().join(parts.next()?)).ok()?;
        let number: usize = parts.next()?.parse().ok()?;
        text.lines().nth(number.checked_sub(1)?).map(str::to_owned)
    };
    let name = list::lasting_name(name);
    EQUIVALENT.lines().filter_map(|known| known.split_once(" — ")).any(|(known, _)| {
        let code = known.strip_prefix(&name).map(|rest| rest.strip_prefix(" in `"));
        match code {
            Some(None) => known == name,
            Some(Some(code)) => {
                line().is_some_and(|line| line.contains(code.trim_end_matches('`')))
            }
            None => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equivalent_mutant_has_a_reason_and_may_have_the_code_of_its_line() {
        for line in EQUIVALENT.lines() {
            let (mutant, reason) = line.split_once(" — ").expect(line);
            let (file, _) = mutant.split_once(": ").expect(line);
            assert!(build::root().join(file).is_file() && !reason.is_empty(), "{line}");
        }
        let plan = "dmd/src/sample/plan.rs:9:1: replace | with ^ in Plan::without_inserting";
        assert!(is_equivalent(plan));
        assert!(!is_equivalent(&plan.replace("inserting", "insertin")));
        let queue = build::root().join("memreport/src/measure/ops/queue.rs");
        let text = fs::read_to_string(queue).unwrap();
        let mut lines = (1..).zip(text.lines());
        let mut at = |code: &str| {
            let (line, _) = lines.find(|(_, text)| text.contains(code)).unwrap();
            let change = "replace < with == in Ops<'a>::enqueue";
            is_equivalent(&format!("memreport/src/measure/ops/queue.rs:{line}:36: {change}"))
        };
        assert!(at("length.get() < HALF_WAY"));
        assert!(!at("length.get() < RING_CAPACITY"));
    }
}

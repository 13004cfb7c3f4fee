//! `cargo xtask mutants [COUNT] [SEED]`: defects that cargo-mutants plants into a random sample of
//! places, and the share that the tests of their packages find.
//!
//! Mutants that behave as the original are listed in `mutants/equivalent.txt`, with the reason.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::build;
use crate::failure::Failure;
use crate::generate::random::Random;

/// The packages whose code other people run.
const PACKAGES: [&str; 5] =
    ["memreport", "memreport-derive", "memreport-dmd", "memreport-analysis", "about-memory"];

/// The packages whose own tests of optional features are fast. The others' take a minute.
const WITH_ALL_FEATURES: [&str; 1] = ["memreport"];

/// The packages whose tests run whole programs, for mutants that a package's own tests miss.
const WHOLE_PROGRAMS: [&str; 2] = ["memreport-tests", "about-memory"];

/// Those of their tests that take seconds.
const NAMED: [&str; 25] = [
    "balance",
    "calibrated",
    "census",
    "classified",
    "cli",
    "dumps",
    "fuzzed",
    "impls",
    "impls_of_crates",
    "late_start",
    "live",
    "log",
    "modes",
    "own_frames",
    "page",
    "recordings",
    "resident",
    "retention",
    "run",
    "scopes",
    "security",
    "stacks",
    "suggestions",
    "timeline",
    "whole_recordings",
];

/// The least share of mutants that must be caught, in percent.
const TARGET: usize = 90;

/// The longest time for the tests of a mutant, in seconds. Those that take longer count as caught.
const TIMEOUT: &str = "120";

const INSTALL: &str = "not run: cargo-mutants is missing: cargo install cargo-mutants --locked";

/// Mutants that no test can find: `FILE: MUTATION — REASON`, a line each.
const EQUIVALENT: &str = include_str!("mutants/equivalent.txt");

/// Plants defects, and prints those that no test finds. Returns `false` if these are too many.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let number =
        |place: usize, otherwise| args.get(place).map_or(Ok(otherwise), |word| word.parse::<u64>());
    let (count, seed) = (number(0, 500)?, number(1, 1)?);
    if !mutants().arg("--version").output().is_ok_and(|output| output.status.success()) {
        writeln!(out, "{INSTALL}")?;
        return Ok(false);
    }
    let start = Instant::now();
    let part = Part::new(number_of_all()?, usize::try_from(count)?, seed);
    let mut sum = Outcomes::default();
    for package in PACKAGES {
        let of_package = part.outcomes(package)?;
        writeln!(out, "{package}: {of_package}")?;
        for name in &of_package.missed {
            writeln!(out, "  missed: {name}")?;
        }
        out.flush()?;
        sum.add(of_package);
    }
    let seconds = start.elapsed().as_secs();
    writeln!(out, "{sum}, seed {seed}, in {seconds} s")?;
    let holds = sum.has_enough_caught();
    writeln!(out, "{}", if holds { "enough are caught" } else { "FAILED: too many are missed" })?;
    Ok(holds)
}

fn mutants() -> Command {
    let mut command = build::cargo();
    command.arg("mutants");
    command
}

/// Returns the number of mutants of all packages.
fn number_of_all() -> Result<usize, Failure> {
    let mut command = mutants();
    command.args(["--list", "--json"]);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    let all: Vec<Value> = serde_json::from_slice(&command.output()?.stdout)?;
    Ok(all.len())
}

/// A systematic random sample: every n-th mutant in the order of the source, from a random one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    first: usize,
    step: usize,
}

impl Part {
    fn new(all: usize, count: usize, seed: u64) -> Part {
        let step = (all / count.max(1)).max(1);
        Part { first: Random::new(seed).index(step), step }
    }

    /// Runs its mutants of a package: with the package's own tests, and those that these miss with
    /// the tests of whole programs.
    fn outcomes(self, package: &str) -> Result<Outcomes, Failure> {
        let folder = build::root().join("target/mutants").join(package);
        if folder.is_dir() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        // Examples in docs are compiled one by one, which takes longer than all other tests.
        let mut own = vec!["--test-package", package, "--cargo-test-arg=--tests"];
        if WITH_ALL_FEATURES.contains(&package) {
            own.push("--all-features");
        }
        let own = self.run(package, &own, &folder)?;
        if own.missed.is_empty() {
            return Ok(own);
        }
        whole_programs_pass()?;
        let packages = WHOLE_PROGRAMS.join(",");
        let named = named_tests().map(|argument| format!("--cargo-test-arg={argument}"));
        let mut tests = vec!["--baseline=skip", "--test-package", &packages];
        let named: Vec<String> = named.collect();
        tests.extend(named.iter().map(String::as_str));
        let rest = self.run(package, &tests, &folder)?;
        let (equivalent, missed): (Vec<_>, Vec<_>) =
            rest.missed.into_iter().partition(|name| is_equivalent(name));
        Ok(Outcomes {
            caught: own.caught + rest.caught,
            missed,
            equivalent: equivalent.len(),
            unviable: own.unviable,
        })
    }

    /// Runs its mutants of a package that the last run in this folder, if any, has not caught.
    fn run(self, package: &str, tests: &[&str], folder: &Path) -> Result<Outcomes, Failure> {
        let Part { first, step } = self;
        let mut command = mutants();
        command.args(["--package", package]).args(tests);
        command.args(["--shard", &format!("{first}/{step}"), "--sharding", "round-robin"]);
        command.args(["--iterate", "--timeout", TIMEOUT, "--colors", "never"]);
        command.arg("--output").arg(folder);
        let status = command.status()?;
        // All caught, some missed, some over time. Otherwise the tests failed without a mutant.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            return Err(format!("cargo mutants of {package}: {status}").into());
        }
        let lines = |file: &str| -> Result<Vec<String>, Failure> {
            let text = fs::read_to_string(folder.join("mutants.out").join(file))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(Outcomes {
            caught: lines("caught.txt")?.len() + lines("timeout.txt")?.len(),
            missed: lines("missed.txt")?,
            equivalent: 0,
            unviable: lines("unviable.txt")?.len(),
        })
    }
}

/// Returns the arguments of `cargo test` for the named tests.
fn named_tests() -> impl Iterator<Item = String> {
    NAMED.iter().map(|test| format!("--test={test}"))
}

/// Fails if the tests of whole programs fail without a mutant.
fn whole_programs_pass() -> Result<(), Failure> {
    let mut cargo = build::cargo();
    cargo.args(["test", "--quiet"]);
    for package in WHOLE_PROGRAMS {
        cargo.args(["--package", package]);
    }
    let status = cargo.args(named_tests()).status()?;
    if status.success() { Ok(()) } else { Err("tests of whole programs fail".into()) }
}

/// The number of mutants of each outcome.
#[derive(Debug, Default)]
struct Outcomes {
    caught: usize,
    /// Their names.
    missed: Vec<String>,
    equivalent: usize,
    /// Mutants that do not compile.
    unviable: usize,
}

impl Outcomes {
    fn add(&mut self, other: Outcomes) {
        self.caught += other.caught;
        self.missed.extend(other.missed);
        self.equivalent += other.equivalent;
        self.unviable += other.unviable;
    }

    fn has_enough_caught(&self) -> bool {
        self.caught > 0 && self.caught * 100 >= (self.caught + self.missed.len()) * TARGET
    }
}

impl fmt::Display for Outcomes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcomes { caught, missed, equivalent, unviable } = self;
        let missed = missed.len();
        write!(out, "{caught} caught, {missed} missed, {equivalent} equivalent, ")?;
        write!(out, "{unviable} that do not compile")
    }
}

/// Returns whether a mutant is in the list, which has no lines and columns, since these change.
fn is_equivalent(name: &str) -> bool {
    let mut parts = name.splitn(4, ':');
    let (Some(file), Some(mutation)) = (parts.next(), parts.nth(2)) else { return false };
    let name = format!("{file}:{mutation}");
    EQUIVALENT.lines().any(|line| line.split_once(" — ").is_some_and(|(known, _)| known == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_the_same_for_the_same_seed_and_has_about_the_number_of_mutants() {
        let part = Part::new(13_208, 500, 7);
        assert_eq!(part, Part::new(13_208, 500, 7));
        assert_eq!(part.step, 26);
        assert!((1..20).any(|seed| Part::new(13_208, 500, seed) != part));
        assert_eq!(Part::new(100, 500, 7), Part { first: 0, step: 1 });
    }

    #[test]
    fn nine_of_ten_must_be_caught() {
        let outcomes = |caught, missed: usize| Outcomes {
            caught,
            missed: vec![String::new(); missed],
            ..Outcomes::default()
        };
        assert!(outcomes(9, 1).has_enough_caught());
        assert!(!outcomes(8, 1).has_enough_caught());
        assert!(!outcomes(0, 0).has_enough_caught());
    }
}

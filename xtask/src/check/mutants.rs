//! `cargo xtask mutants [COUNT] [SEED]`: defects that cargo-mutants plants into a random sample of
//! places, and the share that the tests of their packages find.
//!
//! Mutants that behave as the original are listed in `mutants/equivalent.txt`, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::build;
use crate::failure::Failure;
use crate::generate::random::Random;

/// The packages whose code other people run.
const PACKAGES: [&str; 5] =
    ["memreport", "memreport-derive", "memreport-dmd", "memreport-analysis", "about-memory"];

/// The least share of mutants that must be caught, in percent.
const TARGET: usize = 90;

/// The longest time for the tests of a mutant, in seconds.
const TIMEOUT: &str = "300";

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
    let all = names()?;
    let chosen = sample(&all, usize::try_from(count)?, seed);
    writeln!(out, "{} of {} mutants, seed {seed}", chosen.len(), all.len())?;
    let start = Instant::now();
    let folder = build::root().join("target/mutants");
    fs::create_dir_all(&folder)?;
    let mut command = mutants();
    command.args(["--timeout", TIMEOUT, "--colors", "never", "--output"]).arg(&folder);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    for name in &chosen {
        command.args(["--re", &format!("^{}$", escaped(name))]);
    }
    // Its status tells only whether a mutant was missed.
    command.status()?;
    let read = |file: &str| -> Result<Vec<String>, Failure> {
        let text = fs::read_to_string(folder.join("mutants.out").join(file))?;
        // cargo-mutants 27 runs its deletions of fields whatever is chosen.
        let chosen = |name: &String| chosen.contains(name);
        Ok(text.lines().map(str::to_owned).filter(chosen).collect())
    };
    let (caught, missed) =
        (read("caught.txt")?.len() + read("timeout.txt")?.len(), read("missed.txt")?);
    let (equivalent, missed): (Vec<_>, Vec<_>) =
        missed.into_iter().partition(|name| is_equivalent(name));
    for name in &missed {
        writeln!(out, "missed: {name}")?;
    }
    writeln!(
        out,
        "{caught} caught, {} missed, {} equivalent, {} that do not compile, in {} s",
        missed.len(),
        equivalent.len(),
        read("unviable.txt")?.len(),
        start.elapsed().as_secs()
    )?;
    let holds = caught > 0 && caught * 100 >= (caught + missed.len()) * TARGET;
    writeln!(out, "{}", if holds { "enough are caught" } else { "FAILED: too many are missed" })?;
    Ok(holds)
}

fn mutants() -> Command {
    let mut command = build::cargo();
    command.arg("mutants");
    command
}

/// Returns the names of all mutants of the packages.
fn names() -> Result<Vec<String>, Failure> {
    let output = mutants().args(["--list", "--json"]).output()?;
    let all: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let of_packages =
        all.iter().filter(|one| PACKAGES.iter().any(|package| one["package"] == *package));
    let names: BTreeSet<&str> = of_packages.filter_map(|one| one["name"].as_str()).collect();
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Returns this many names, each as likely as any other.
fn sample(all: &[String], count: usize, seed: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut left: BTreeMap<usize, &String> = all.iter().enumerate().collect();
    let mut chosen = Vec::new();
    while chosen.len() < count.min(all.len()) {
        if let Some(name) = left.remove(&random.index(all.len())) {
            chosen.push(name.clone());
        }
    }
    chosen
}

/// Returns a regular expression that matches this text only.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
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
    fn a_sample_is_the_same_for_the_same_seed_and_has_nothing_twice() {
        let all: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let chosen = sample(&all, 50, 7);
        assert_eq!(chosen, sample(&all, 50, 7));
        assert_ne!(chosen, sample(&all, 50, 8));
        let different: BTreeSet<_> = chosen.iter().collect();
        assert_eq!(different.len(), 50);
        assert_eq!(sample(&all, 500, 7).len(), 100);
    }

    #[test]
    fn names_are_matched_as_they_are() {
        assert_eq!(escaped("a.rs:1: f -> A<B>"), r"a\.rs:1: f \-> A<B>");
    }
}

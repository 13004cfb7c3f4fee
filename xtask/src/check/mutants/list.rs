//! The mutants of the packages, as cargo-mutants lists them, and a sample of them.

use serde_json::Value;

use super::PACKAGES;
use crate::build;
use crate::failure::Failure;
use crate::generate::random::Random;

/// A change of the code that a test should find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    /// Its file, line, column and what changes.
    pub(super) name: String,
    pub(super) package: String,
    pub(super) file: String,
    /// Its kind of code, in cargo-mutants' words, such as `FnValue`.
    pub(super) genre: String,
    /// The type that its function returns, such as `-> bool`.
    pub(super) returns: String,
    pub(super) start: Place,
    pub(super) end: Place,
    pub(super) replacement: String,
}

/// A place in a file, both counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Mutant {
    fn of(value: &Value) -> Option<Mutant> {
        let word = |name: &str| value[name].as_str().map(str::to_owned);
        let place = |end: &str| {
            let number = |name: &str| usize::try_from(value["span"][end][name].as_u64()?).ok();
            Some(Place { line: number("line")?, column: number("column")? })
        };
        let returns = value["function"]["return_type"].as_str().unwrap_or_default();
        Some(Mutant {
            name: word("name")?,
            package: word("package")?,
            file: word("file")?,
            genre: word("genre")?,
            returns: returns.to_owned(),
            start: place("start")?,
            end: place("end")?,
            replacement: word("replacement")?,
        })
    }

    /// Returns the name without line and column, which change with other code.
    pub(super) fn lasting_name(&self) -> String {
        lasting_name(&self.name)
    }
}

/// Returns a name of a mutant without line and column.
pub(super) fn lasting_name(name: &str) -> String {
    let mut parts = name.splitn(4, ':');
    match (parts.next(), parts.nth(2)) {
        (Some(file), Some(change)) => format!("{file}:{change}"),
        _ => name.to_owned(),
    }
}

/// Returns all mutants of the packages, in the order of the source.
pub(super) fn all() -> Result<Vec<Mutant>, Failure> {
    let mut command = build::cargo();
    command.args(["mutants", "--list", "--json"]);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let all: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let is_code = |mutant: &Mutant| !is_test(&mutant.file);
    Ok(all.iter().filter_map(Mutant::of).filter(is_code).collect())
}

/// Returns whether a file has only tests, or models of the code.
fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.ends_with("/models.rs") || file.contains("/tests/")
}

/// Returns a systematic random sample: mutants at even distances, from a random one on.
pub(super) fn sample(all: &[Mutant], count: usize, seed: u64) -> Vec<Mutant> {
    let count = count.clamp(1, all.len().max(1));
    let first = Random::new(seed).index(all.len());
    let places = (0..count).map(|number| (first + number * all.len() / count) % all.len().max(1));
    let mut places: Vec<usize> = places.filter(|_| !all.is_empty()).collect();
    places.sort_unstable();
    places.into_iter().map(|place| all[place].clone()).collect()
}

/// Returns the mutant of a name. If the code has changed since, that is the nearest one of the
/// same change.
pub(super) fn named<'a>(all: &'a [Mutant], name: &str) -> Option<&'a Mutant> {
    let line = line_of(name);
    let alike = || all.iter().filter(|mutant| mutant.lasting_name() == lasting_name(name));
    let nearest = || alike().min_by_key(|mutant| mutant.start.line.abs_diff(line));
    all.iter().find(|mutant| mutant.name == *name).or_else(nearest)
}

fn line_of(name: &str) -> usize {
    name.split(':').nth(1).and_then(|line| line.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(line: usize, change: &str) -> Mutant {
        Mutant {
            name: format!("a/src/b.rs:{line}:9: {change}"),
            package: "a".to_owned(),
            file: "a/src/b.rs".to_owned(),
            genre: "FnValue".to_owned(),
            returns: String::new(),
            start: Place { line, column: 9 },
            end: Place { line, column: 12 },
            replacement: "()".to_owned(),
        }
    }

    #[test]
    fn a_sample_is_the_same_for_the_same_seed_and_has_the_number_of_mutants() {
        let all: Vec<Mutant> = (0..1_320).map(|line| mutant(line, "replace f with ()")).collect();
        for count in [1, 7, 500, 1_320] {
            assert_eq!(sample(&all, count, 7), sample(&all, count, 7));
            let mut taken = sample(&all, count, 7);
            taken.dedup();
            assert_eq!(taken.len(), count);
        }
        assert!((1..20).any(|seed| sample(&all, 50, seed) != sample(&all, 50, 7)));
        assert_eq!(sample(&all, 5_000, 7).len(), 1_320);
        assert_eq!(sample(&[], 500, 7), []);
    }

    #[test]
    fn tests_have_no_mutants() {
        for (file, expected) in [
            ("dmd/src/table/blocks/tests.rs", true),
            ("dmd/src/stack/tests/walk.rs", true),
            ("dmd/src/table/models.rs", true),
            ("dmd/src/testing/budget.rs", false),
        ] {
            assert_eq!(is_test(file), expected, "{file}");
        }
    }

    #[test]
    fn a_mutant_is_found_again_after_its_line_has_moved() {
        let all = [mutant(3, "delete !"), mutant(50, "delete !"), mutant(51, "replace + with -")];
        assert_eq!(named(&all, &all[2].name), Some(&all[2]));
        assert_eq!(named(&all, "a/src/b.rs:47:2: delete !"), Some(&all[1]));
        assert_eq!(named(&all, "a/src/c.rs:47:2: delete !"), None);
    }
}

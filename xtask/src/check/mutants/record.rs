//! The outcomes of a sample, in a file to which each one is added at once.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use super::is_equivalent;
use crate::build;
use crate::failure::Failure;

/// The least share of mutants that must be caught, in percent.
const TARGET: usize = 90;

/// The result for a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A test of its own package fails.
    CaughtByOwn,
    /// A test of another package fails.
    CaughtByOthers,
    /// A test does not end.
    TimedOut,
    Missed,
    /// It does not compile.
    Unviable,
    /// Its code is no longer there.
    Gone,
    /// Not run yet.
    Waiting,
}

/// The outcomes and the words for them in the file.
const WORDS: [(Outcome, &str); 7] = [
    (Outcome::CaughtByOwn, "caught-by-own"),
    (Outcome::CaughtByOthers, "caught-by-others"),
    (Outcome::TimedOut, "timed-out"),
    (Outcome::Missed, "missed"),
    (Outcome::Unviable, "unviable"),
    (Outcome::Gone, "gone"),
    (Outcome::Waiting, "waiting"),
];

impl Outcome {
    pub(super) fn word(self) -> &'static str {
        WORDS.iter().find(|(known, _)| *known == self).map_or("", |(_, word)| word)
    }
}

/// The outcomes of a sample, by name of mutant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) seed: u64,
    pub(super) outcomes: Vec<(String, Outcome)>,
}

fn file() -> PathBuf {
    build::root().join("target/mutants/outcomes.txt")
}

impl Record {
    pub(super) fn new(seed: u64, names: impl Iterator<Item = String>) -> Self {
        Record { seed, outcomes: names.map(|name| (name, Outcome::Waiting)).collect() }
    }

    /// Reads the last one.
    pub(super) fn read() -> Result<Self, Failure> {
        let file = file();
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        Self::parse(&text).ok_or_else(|| format!("{}: not a record", file.display()).into())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let seed = lines.next()?.strip_prefix("seed ")?.parse().ok()?;
        let mut record = Record { seed, outcomes: Vec::new() };
        for line in lines {
            let (word, name) = line.split_once(' ')?;
            let (outcome, _) = WORDS.into_iter().find(|(_, known)| *known == word)?;
            record.outcomes.push((name.to_owned(), outcome));
        }
        Some(record)
    }

    /// Sets an outcome and writes the file.
    pub(super) fn set(&mut self, place: usize, outcome: Outcome) -> Result<(), Failure> {
        self.outcomes[place].1 = outcome;
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        let file = file();
        fs::create_dir_all(file.parent().unwrap_or(&file))?;
        Ok(fs::write(file, self.text())?)
    }

    fn text(&self) -> String {
        let mut text = format!("seed {}\n", self.seed);
        for (name, outcome) in &self.outcomes {
            text.extend([outcome.word(), " ", name, "\n"]);
        }
        text
    }

    /// Counts the outcomes of mutants whose names begin so.
    pub(super) fn sum(&self, prefix: &str) -> Sum {
        let mut sum = Sum::default();
        for (name, outcome) in self.outcomes.iter().filter(|(name, _)| name.starts_with(prefix)) {
            let place = match outcome {
                Outcome::CaughtByOwn => &mut sum.by_own,
                Outcome::CaughtByOthers => &mut sum.by_others,
                Outcome::TimedOut => &mut sum.timed_out,
                Outcome::Missed if is_equivalent(name) => &mut sum.equivalent,
                Outcome::Missed => &mut sum.missed,
                Outcome::Unviable => &mut sum.unviable,
                Outcome::Gone => &mut sum.gone,
                Outcome::Waiting => &mut sum.waiting,
            };
            *place += 1;
        }
        sum
    }
}

/// The numbers of mutants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    by_own: usize,
    by_others: usize,
    timed_out: usize,
    missed: usize,
    equivalent: usize,
    unviable: usize,
    gone: usize,
    waiting: usize,
}

impl Sum {
    fn caught(self) -> usize {
        self.by_own + self.by_others + self.timed_out
    }

    pub(super) fn has_enough_caught(self) -> bool {
        let caught = self.caught();
        caught > 0 && self.waiting == 0 && caught * 100 >= (caught + self.missed) * TARGET
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sum { by_own, by_others, timed_out, missed, equivalent, unviable, gone, waiting } =
            self;
        let caught = self.caught();
        let percent = caught * 100 / (caught + missed).max(1);
        write!(
            out,
            "{caught} caught ({by_own} by the package's own tests, {by_others} by others, "
        )?;
        write!(out, "{timed_out} without end), {missed} missed, {equivalent} equivalent, ")?;
        write!(out, "{unviable} that do not compile, {gone} gone, {waiting} not run: {percent} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record =
            Record::new(7, ["a.rs:1:2: delete !", "b.rs:3:4: x"].map(str::to_owned).into_iter());
        for (outcome, word) in WORDS {
            record.outcomes[1].1 = outcome;
            let text = format!("seed 7\nwaiting a.rs:1:2: delete !\n{word} b.rs:3:4: x\n");
            assert_eq!(record.text(), text);
            assert_eq!(Record::parse(&text).as_ref(), Some(&record));
        }
        for bad in ["", "seed x\n", "seed 7\nlost a.rs\n", "seed 7\nmissed\n"] {
            assert_eq!(Record::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn nine_of_ten_must_be_caught_and_all_run() {
        let sum = |by_own, missed, waiting| Sum { by_own, missed, waiting, ..Sum::default() };
        assert!(sum(9, 1, 0).has_enough_caught());
        assert!(!sum(8, 1, 0).has_enough_caught());
        assert!(!sum(9, 1, 1).has_enough_caught());
        assert!(!sum(0, 0, 0).has_enough_caught());
        let others = Sum { by_others: 5, timed_out: 4, missed: 1, equivalent: 9, ..Sum::default() };
        assert!(others.has_enough_caught());
    }
}

//! Runs the tests that reach a mutant: first its own package's, then other packages'.

use std::io::Write;

use super::list::{self, Mutant};
use super::programs::{End, Group, Program, Test, Tests};
use super::record::{Outcome, Record};
use super::tree::{Apart, Built, Targets, Tree};
use super::{FOLDERS, NAMED, PACKAGES, is_equivalent};
use crate::failure::Failure;

/// The longest times for the tests of a mutant's package, and for the others, in seconds that these
/// take without the mutant. The quickest tests find most.
const LONGEST_OWN: f64 = 12.0;
const LONGEST_OTHERS: f64 = 40.0;

/// A mutant, and its place in the record.
struct Task {
    place: usize,
    mutant: Mutant,
}

/// Runs those mutants of a record that were missed or not run.
pub(super) fn run(all: &[Mutant], record: &mut Record, out: &mut dyn Write) -> Result<(), Failure> {
    let mut tasks = Vec::new();
    for place in 0..record.outcomes.len() {
        let (name, outcome) = record.outcomes[place].clone();
        if !matches!(outcome, Outcome::Missed | Outcome::Waiting) {
            continue;
        }
        if let Some(mutant) = list::named(all, &name) {
            record.outcomes[place].0.clone_from(&mutant.name);
            tasks.push(Task { place, mutant: mutant.clone() });
        } else {
            record.set(place, Outcome::Gone)?;
        }
    }
    let mutants: Vec<Mutant> = tasks.iter().map(|task| task.mutant.clone()).collect();
    let tree = Tree::copy(&mutants)?;
    writeln!(out, "building {} mutants", mutants.len())?;
    let built = tree.build_switched(&mutants)?;
    writeln!(out, "{} mutants have no switch", built.apart.len())?;
    let mut run = Run { tasks, tree, built, record, out };
    let own = run.own_tests()?;
    let missed = run.switched_with_own(&own)?;
    run.switched_with_others(&missed, &own)?;
    // Last, since these builds replace the programs of the others.
    run.singles(&own)?;
    run.tree.restore()
}

struct Run<'a> {
    tasks: Vec<Task>,
    tree: Tree,
    built: Built,
    record: &'a mut Record,
    out: &'a mut dyn Write,
}

impl Run<'_> {
    /// Runs the own tests of packages with mutants, without a mutant.
    fn own_tests(&mut self) -> Result<Tests, Failure> {
        let folders = self.tasks.iter().map(|task| folder(&task.mutant));
        let mut folders: Vec<&str> = folders.collect();
        // The derive is tested where it is used.
        folders.push("memreport");
        let is_own = |program: &&Program| folders.iter().any(|it| program.package.ends_with(it));
        let programs: Vec<&Program> = self.built.programs.iter().filter(is_own).collect();
        let tests = Tests::of(&programs)?;
        self.say_tests("own", &tests)?;
        Ok(tests)
    }

    fn say_tests(&mut self, which: &str, tests: &Tests) -> Result<(), Failure> {
        let number = tests.tests.len();
        writeln!(self.out, "{number} {which} tests pass without a mutant; left out:")?;
        for name in &tests.left_out {
            writeln!(self.out, "  {name}")?;
        }
        Ok(self.out.flush()?)
    }

    /// Runs the mutants with switches. Returns those that their packages' own tests miss.
    fn switched_with_own(&mut self, own: &Tests) -> Result<Vec<usize>, Failure> {
        let mut missed = Vec::new();
        for number in 0..self.tasks.len() {
            match self.built.apart.get(&number) {
                Some(Apart::Unviable) => self.set(number, Outcome::Unviable, "")?,
                Some(Apart::Single) => {}
                None => {
                    let folder = folder(&self.tasks[number].mutant);
                    let of_package = own.tests.iter().filter(|test| test.is_of(folder));
                    let reached =
                        within_time(of_package.filter(|test| test.reaches(number)), LONGEST_OWN);
                    let outcome = outcome(&reached, number, Outcome::CaughtByOwn)?;
                    // No test can find the equivalent ones.
                    let name = &self.tasks[number].mutant.name;
                    if outcome == Outcome::Missed && !is_equivalent(name) {
                        missed.push(number);
                    }
                    let note = format!(" ({} own tests reach it)", reached.len());
                    self.set(number, outcome, &note)?;
                }
            }
        }
        Ok(missed)
    }

    /// Runs the mutants without switches, each in a build of its own.
    fn singles(&mut self, own: &Tests) -> Result<(), Failure> {
        let singles: Vec<usize> = (self.built.apart.iter())
            .filter(|(_, apart)| **apart == Apart::Single)
            .map(|(number, _)| *number)
            .collect();
        if !singles.is_empty() {
            // The other builds stay as they are: they are other files.
            self.tree.restore()?;
        }
        for number in singles {
            let mutant = &self.tasks[number].mutant;
            // The tests in the library find most, and building the others takes longer.
            let mut outcome = self.single(mutant, Targets::Library, own)?;
            if outcome == Outcome::Missed {
                outcome = self.single(mutant, Targets::All, own)?;
            }
            self.set(number, outcome, " (alone, with own tests)")?;
        }
        Ok(())
    }

    /// Builds a mutant alone, and runs its package's own tests.
    fn single(&self, mutant: &Mutant, targets: Targets, own: &Tests) -> Result<Outcome, Failure> {
        let Some(programs) = self.tree.build_single(mutant, targets)? else {
            return Ok(Outcome::Unviable);
        };
        for group in Group::of(own.tests.iter()) {
            match group.end_in(&programs)? {
                End::Passed => {}
                End::Failed => return Ok(Outcome::CaughtByOwn),
                End::TimedOut => return Ok(Outcome::TimedOut),
            }
        }
        Ok(Outcome::Missed)
    }

    /// Runs mutants with the tests of other packages that reach them, the quickest first.
    fn switched_with_others(&mut self, missed: &[usize], own: &Tests) -> Result<(), Failure> {
        if missed.is_empty() {
            return Ok(());
        }
        let is_other = |program: &&Program| {
            let known = own.tests.iter().any(|test| test.is_in(program));
            let is_whole = program.package.ends_with("tests");
            !known && (!is_whole || NAMED.contains(&program.name.as_str()))
        };
        let programs: Vec<&Program> = self.built.programs.iter().filter(is_other).collect();
        let mut others = Tests::of(&programs)?;
        self.say_tests("other", &others)?;
        others.add(own.tests.clone());
        for &number in missed {
            let folder = folder(&self.tasks[number].mutant);
            let reached = others.tests.iter().filter(|it| !it.is_of(folder) && it.reaches(number));
            let within = within_time(reached, LONGEST_OTHERS);
            let outcome = outcome(&within, number, Outcome::CaughtByOthers)?;
            self.set(number, outcome, &format!(" ({} other tests reach it)", within.len()))?;
        }
        Ok(())
    }

    fn set(&mut self, number: usize, outcome: Outcome, note: &str) -> Result<(), Failure> {
        let Task { place, mutant } = &self.tasks[number];
        self.record.set(*place, outcome)?;
        writeln!(self.out, "{}: {}{note}", outcome.word(), mutant.name)?;
        Ok(self.out.flush()?)
    }
}

/// Returns the folder of a mutant's package.
fn folder(mutant: &Mutant) -> &'static str {
    let place = PACKAGES.iter().position(|package| *package == mutant.package);
    place.map_or("", |place| FOLDERS[place].trim_end_matches('/'))
}

/// Runs tests with a mutant until one fails.
fn outcome(tests: &[&Test], mutant: usize, caught: Outcome) -> Result<Outcome, Failure> {
    for group in Group::of(tests.iter().copied()) {
        match group.end_with(mutant)? {
            End::Passed => {}
            End::Failed => return Ok(caught),
            End::TimedOut => return Ok(Outcome::TimedOut),
        }
    }
    Ok(Outcome::Missed)
}

/// Returns the quickest tests.
fn within_time<'a>(tests: impl Iterator<Item = &'a Test>, longest: f64) -> Vec<&'a Test> {
    let mut seconds = 0.0;
    tests
        .take_while(|test| {
            seconds += test.seconds();
            seconds < longest
        })
        .collect()
}

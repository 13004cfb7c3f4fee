//! The length of files: half of them fit two screens, and none needs more than a short read.

use super::super::files::{CRATES, Workspace};
use super::super::outcome::Outcome;

const MEDIAN: usize = 150;
const LONGEST: usize = 450;

/// Checks the median and the longest file of each crate. Files of tests do not count.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let (mut offenders, mut sizes) = (Vec::new(), Vec::new());
    for name in CRATES {
        let files = workspace.below(name).filter(|source| !source.is_test());
        let mut lengths: Vec<(usize, &str)> =
            files.map(|source| (source.text.lines().count(), source.path.as_str())).collect();
        lengths.sort_unstable();
        let Some((median, _)) = lengths.get(lengths.len() / 2).copied() else { continue };
        if median > MEDIAN {
            offenders.push(format!("{name}: half the files are longer than {median} lines"));
        }
        let long = lengths.iter().rev().take_while(|(length, _)| *length > LONGEST);
        offenders.extend(long.map(|(length, path)| format!("{path}: {length} lines")));
        let longest = lengths.last().map_or(0, |(length, _)| *length);
        sizes.push(format!("{name} {median}/{longest}"));
    }
    let limits = format!("median at most {MEDIAN}, longest at most {LONGEST}");
    Outcome::none_of(offenders).with_summary(format!("{}; {limits}", sizes.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_seen() {
        let (short, middle, long) = ("\n".repeat(9), "\n".repeat(151), "\n".repeat(451));
        let outcome = check(&Workspace::of(&[
            ("dmd/src/a.rs", &short),
            ("dmd/src/b.rs", &long),
            ("dmd/src/b/tests.rs", &long),
            ("dmd/src/c.rs", &short),
            ("xtask/src/a.rs", &middle),
            ("tests/src/a.rs", &long),
        ]));
        assert_eq!(
            outcome.offenders,
            ["dmd/src/b.rs: 451 lines", "xtask: half the files are longer than 151 lines"]
        );
    }
}

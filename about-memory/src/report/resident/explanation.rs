//! Explains the resident memory of a process: the sums, their growth and the verdict.

use super::account::{self, Line, Sum, sums};
use super::snapshot::ProcessSnapshot;
use super::verdict::{self, Verdict};

/// An explanation of resident memory.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The process.
    pub process: String,
    /// The number of snapshots, and the milliseconds between the first and the last if known.
    pub snapshots: (usize, Option<u64>),
    /// The sums of the last snapshot, with their growth since the first.
    pub sums: Vec<ComparedSum>,
    /// The conclusion.
    pub verdict: Verdict,
    /// The reasons to doubt the figures, as sentences.
    pub notes: Vec<String>,
}

/// A sum of the last snapshot, compared with the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedSum {
    /// The way of dividing, as `by use`.
    pub by: &'static str,
    /// The divided amount and its growth.
    pub whole: (Line, Option<i64>),
    /// The parts and their growth, which add up to the whole.
    pub parts: Vec<(Line, Option<i64>)>,
}

impl Explanation {
    /// Explains the snapshots of one process. Sorts them by time.
    ///
    /// # Panics
    /// There is no snapshot.
    pub fn new(mut snapshots: Vec<ProcessSnapshot>) -> Self {
        if snapshots.iter().all(|snapshot| snapshot.time_ms.is_some()) {
            snapshots.sort_by_key(|snapshot| snapshot.time_ms);
        }
        let verdict = verdict::of(&snapshots);
        let (first, last) = (&snapshots[0], &snapshots[snapshots.len() - 1]);
        // Both snapshots are divided into the same paths, so that each difference is growth.
        let paths = account::largest_paths(last);
        let before = (snapshots.len() > 1).then(|| sums(first, &paths));
        let compared = sums(last, &paths).into_iter().map(|sum| {
            let is_same =
                |before: &&Sum| (&before.whole.name, before.by) == (&sum.whole.name, sum.by);
            let same = before.as_deref().and_then(|before| before.iter().find(is_same));
            ComparedSum::new(sum, same)
        });
        let span =
            last.time_ms.zip(first.time_ms).and_then(|(last, first)| last.checked_sub(first));
        Explanation {
            process: last.process.clone(),
            snapshots: (snapshots.len(), span.filter(|_| snapshots.len() > 1)),
            sums: compared.collect(),
            verdict,
            notes: notes(&snapshots),
        }
    }
}

impl ComparedSum {
    /// Compares two sums. Without the first, the growth is unknown.
    fn new(now: Sum, before: Option<&Sum>) -> Self {
        let Some(before) = before else {
            let alone = |line| (line, None);
            return ComparedSum {
                by: now.by,
                whole: alone(now.whole),
                parts: now.parts.into_iter().map(alone).collect(),
            };
        };
        let old = &before.parts;
        let was =
            |name: &str| old.iter().find(|line| line.name == name).map_or(0, |line| line.bytes);
        let gone = old.iter().filter(|line| now.parts.iter().all(|new| new.name != line.name));
        let gone: Vec<_> = gone.map(|line| Line { bytes: 0, ..line.clone() }).collect();
        let grown = |line: Line| {
            let growth = line.bytes - was(&line.name);
            (line, Some(growth))
        };
        let growth = now.whole.bytes - before.whole.bytes;
        let mut parts: Vec<_> = now.parts.into_iter().chain(gone).map(grown).collect();
        // The remainder comes last, also if only one of the two snapshots has it.
        parts.sort_by_key(|(line, _)| line.name == account::REST);
        ComparedSum { by: now.by, whole: (now.whole, Some(growth)), parts }
    }
}

fn notes(snapshots: &[ProcessSnapshot]) -> Vec<String> {
    let mut notes = Vec::new();
    if snapshots.windows(2).any(|pair| !pair[0].is_of_same_process(&pair[1])) {
        notes.push(
            "the files are of different processes, or of one that was started again".to_owned(),
        );
    }
    if snapshots.iter().any(|snapshot| !snapshot.has("rss")) {
        notes.push(
            "not all files say how resident memory is mapped, so it is not explained".to_owned(),
        );
    }
    if snapshots.iter().any(|snapshot| !snapshot.has("heap-committed")) {
        notes.push("not all files say what the allocator has committed".to_owned());
    }
    for (snapshot, number) in snapshots.iter().zip(1..) {
        notes.extend(snapshot.notes.iter().map(|note| match snapshots.len() {
            1 => note.clone(),
            all => format!("snapshot {number} of {all}: {note}"),
        }));
    }
    if let Some(over) = snapshots.last().map(account::dark).filter(|dark| *dark < 0) {
        notes
            .push(format!("{} bytes more are reported than are allocated: a double report", -over));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::resident::snapshot::tests::snapshot;

    #[test]
    fn a_heap_that_reports_exceed_is_noted() {
        for (reported, expected) in [
            (900, None),
            (1000, None),
            (1001, Some("1 bytes more are reported than are allocated: a double report")),
        ] {
            let reports = format!(
                "rss/anonymous/unnamed 2 1000
                 heap-committed/allocated 2 1000
                 heap-allocated 2 1000
                 explicit/cache 1 {reported}"
            );
            let notes = notes(&[snapshot(0, &reports)]);
            assert_eq!(notes, expected.into_iter().collect::<Vec<_>>(), "{reported}");
        }
    }

    #[test]
    fn a_path_that_becomes_one_of_the_largest_grows_by_its_own_bytes() {
        let reports = |sixth: &str| {
            let large: String =
                ["a", "b", "c", "d", "e"].map(|path| format!("explicit/{path} 1 900\n")).concat();
            format!("heap-allocated 2 9000\n{large}{sixth}")
        };
        let before = snapshot(0, &reports("explicit/old 1 60\nexplicit/new 1 50"));
        let after = snapshot(1, &reports("explicit/old 1 40\nexplicit/new 1 55"));
        let explanation = Explanation::new(vec![before, after]);
        let [by_reporter] = &explanation.sums[..] else { panic!("{:?}", explanation.sums) };
        let growth = |name: &str| {
            let part = by_reporter.parts.iter().find(|(line, _)| line.name == name);
            part.map(|(line, growth)| (line.bytes, *growth))
        };
        assert_eq!(growth("explicit/new"), Some((55, Some(5))));
        assert_eq!(growth("explicit/old"), None);
        assert_eq!(growth("other reported paths"), Some((40, Some(-20))));
    }
}

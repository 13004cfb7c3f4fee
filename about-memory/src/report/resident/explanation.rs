//! Explains the resident memory of a process: the sums, their growth and the verdict.

use super::account::{self, Line, Sum, sums};
use super::snapshot::ProcessSnapshot;
use super::verdict::{self, Verdict};

/// The whole page, as a value.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The process.
    pub process: String,
    /// How many snapshots there are, and how many milliseconds lie between the first and the last, where known.
    pub snapshots: (usize, Option<u64>),
    /// The sums of the last snapshot, each line with what it grew by since the first, if there are two.
    pub sums: Vec<ComparedSum>,
    /// What is to be concluded.
    pub verdict: Verdict,
    /// What makes the figures doubtful, as sentences.
    pub notes: Vec<String>,
}

/// A sum of the last snapshot beside that of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedSum {
    /// In which way the whole is divided, as `by use`.
    pub by: &'static str,
    /// What is divided, and by how much it grew.
    pub whole: (Line, Option<i64>),
    /// The parts, which add up to it, as do their growths.
    pub parts: Vec<(Line, Option<i64>)>,
}

impl Explanation {
    /// Explains the snapshots of one process; they are put in the order of time.
    ///
    /// # Panics
    /// Where there is none.
    pub fn new(mut snapshots: Vec<ProcessSnapshot>) -> Self {
        if snapshots.iter().all(|snapshot| snapshot.time_ms.is_some()) {
            snapshots.sort_by_key(|snapshot| snapshot.time_ms);
        }
        let verdict = verdict::of(&snapshots);
        let (first, last) = (&snapshots[0], &snapshots[snapshots.len() - 1]);
        let before = (snapshots.len() > 1).then(|| sums(first));
        let compared = sums(last).into_iter().map(|sum| {
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
    /// Of what the first snapshot says nothing, nobody knows what it grew by.
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
        // What is left comes last, also where only one of the two snapshots has it.
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
    if let Some(over) = snapshots.last().map(account::dark).filter(|dark| *dark < 0) {
        notes
            .push(format!("{} bytes more are reported than are allocated: a double report", -over));
    }
    notes
}

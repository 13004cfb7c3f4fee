//! Moments of the program that belong beside its memory: a collection of garbage, an eviction, a compaction.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::tracker::as_own;

/// A moment that somebody has marked.
#[derive(Clone, Debug)]
pub struct Mark {
    /// When.
    pub time: Instant,
    /// What happened, in words.
    pub words: Cow<'static, str>,
}

/// As many are kept for whoever looks late.
const KEPT: usize = 4096;

/// The last marks, and how many there were before them.
struct Marks {
    before: u64,
    last: VecDeque<Mark>,
}

static MARKS: Mutex<Marks> = Mutex::new(Marks { before: 0, last: VecDeque::new() });

fn marks() -> MutexGuard<'static, Marks> {
    // A mark is pushed under the lock, and nothing that panics.
    MARKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks this moment in recordings of the program: "evicted 300 pages". Snapshots and [`minimize`](crate::minimize) mark
/// themselves.
///
/// The last 4,096 marks are kept for a recorder. This takes a lock for a moment: it is not meant for what happens a thousand
/// times a second.
///
/// ```
/// memreport::mark("compaction");
/// ```
pub fn mark(words: impl Into<Cow<'static, str>>) {
    let mark = Mark { time: Instant::now(), words: words.into() };
    as_own(|| {
        let mut marks = marks();
        if marks.last.len() >= KEPT {
            marks.last.pop_front();
            marks.before += 1;
        }
        marks.last.push_back(mark);
    });
}

/// The marks from number `first` on that are still kept, and the number of the next one to come.
#[must_use]
pub fn marks_from(first: u64) -> (Vec<Mark>, u64) {
    let marks = marks();
    let next = marks.before + marks.last.len() as u64;
    let skipped = usize::try_from(first.saturating_sub(marks.before)).unwrap_or(usize::MAX);
    (marks.last.iter().skip(skipped).cloned().collect(), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_handed_on_once() {
        let (_, first) = marks_from(u64::MAX);
        mark("one");
        mark(String::from("two"));
        let (marks, next) = marks_from(first);
        let words: Vec<_> = marks.iter().map(|mark| &*mark.words).collect();
        assert!(words.contains(&"one") && words.contains(&"two"), "{words:?}");
        mark("three");
        let (marks, last) = marks_from(next);
        assert!(marks.iter().any(|mark| mark.words == "three") && last > next);
        for _ in 0..KEPT {
            mark("many");
        }
        let (kept, _) = marks_from(0);
        assert_eq!(kept.len(), KEPT);
    }
}

//! Moments of the program that belong beside its memory: a collection of garbage, an eviction, a compaction.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::on_alloc::as_own;

/// A moment that somebody has marked.
#[derive(Clone, Debug)]
pub struct Mark {
    /// When.
    pub time: Instant,
    /// What happened, in words.
    pub words: Cow<'static, str>,
}

/// As many are kept for a reader that is slow.
const KEPT: usize = 4096;

/// The last marks, and how many there were before them.
struct Marks {
    before: u64,
    last: VecDeque<Mark>,
}

static MARKS: Mutex<Marks> = Mutex::new(Marks { before: 0, last: VecDeque::new() });

/// How many read them. While nobody does, nothing is kept.
static READERS: AtomicUsize = AtomicUsize::new(0);

/// The process that they are in. A forked child has none of them, and must not wait for a lock that one may have held.
static READING: AtomicU32 = AtomicU32::new(0);

fn marks() -> MutexGuard<'static, Marks> {
    // A mark is pushed under the lock, and nothing that panics.
    MARKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks this moment in recordings of the program: "evicted 300 pages". Snapshots and [`minimize`](crate::minimize) mark
/// themselves.
///
/// While nothing is recorded this does nothing. Else it takes a lock for a moment: it is not meant for what happens a thousand
/// times a second.
///
/// ```
/// memreport::mark("compaction");
/// ```
pub fn mark(words: impl Into<Cow<'static, str>>) {
    mark_with(|| words.into());
}

/// Whether somebody reads them in this process.
pub(crate) fn is_read() -> bool {
    // Relaxed: a mark at the moment when a reader comes may be read or not.
    READERS.load(Relaxed) > 0 && READING.load(Relaxed) == std::process::id()
}

/// The same, with words that are made only if somebody reads them.
pub(crate) fn mark_with(words: impl FnOnce() -> Cow<'static, str>) {
    if !is_read() {
        return;
    }
    as_own(|| {
        let mark = Mark { time: Instant::now(), words: words() };
        let mut marks = marks();
        if marks.last.len() >= KEPT {
            marks.last.pop_front();
            marks.before += 1;
        }
        marks.last.push_back(mark);
    });
}

/// Reads marks as they are made, each once; what it is too slow for is lost.
#[derive(Debug)]
pub struct MarkReader {
    next: u64,
}

impl Default for MarkReader {
    /// Of the marks from now on.
    fn default() -> Self {
        let marks = marks();
        READING.store(std::process::id(), Relaxed);
        READERS.fetch_add(1, Relaxed);
        MarkReader { next: marks.before + marks.last.len() as u64 }
    }
}

impl MarkReader {
    /// Those that were made since the last time.
    pub fn take(&mut self) -> Vec<Mark> {
        let marks = marks();
        let skipped = usize::try_from(self.next.saturating_sub(marks.before)).unwrap_or(usize::MAX);
        self.next = marks.before + marks.last.len() as u64;
        marks.last.iter().skip(skipped).cloned().collect()
    }
}

impl Drop for MarkReader {
    fn drop(&mut self) {
        let mut marks = marks();
        if READERS.fetch_sub(1, Relaxed) == 1 {
            marks.before += marks.last.len() as u64;
            marks.last = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_handed_on_once_to_who_listens() {
        mark("before");
        let mut reader = MarkReader::default();
        mark("one");
        mark(String::from("two"));
        let take = |reader: &mut MarkReader| {
            reader.take().into_iter().map(|mark| mark.words.into_owned()).collect::<Vec<_>>()
        };
        let words = take(&mut reader);
        let has = |wanted: &str| words.iter().any(|word| word == wanted);
        assert!(has("one") && has("two") && !has("before"), "{words:?}");
        mark("three");
        assert!(take(&mut reader).iter().any(|word| word == "three"));
        for _ in 0..KEPT + 10 {
            mark("many");
        }
        assert_eq!(take(&mut reader).len(), KEPT);
        drop(reader);
        assert_eq!(marks().last.capacity(), 0, "nothing is kept for nobody");
    }
}

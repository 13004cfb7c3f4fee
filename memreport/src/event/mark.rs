//! Marks moments of the program in recordings of its memory, such as an eviction or a compaction.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::memory_event::MemoryEvent;
use super::on_alloc::as_own;

/// A marked moment.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The time of the mark.
    pub time: Instant,
    /// The text of the mark.
    pub words: Cow<'static, str>,
    /// The cycle of work that ended at this moment.
    pub event: Option<MemoryEvent>,
}

/// The most marks retained for a slow reader.
const MAX_RETAINED: usize = 4096;

/// The last marks, and the number of marks before them.
struct Marks {
    before: u64,
    last: VecDeque<Mark>,
}

static MARKS: Mutex<Marks> = Mutex::new(Marks { before: 0, last: VecDeque::new() });

/// The number of readers. Without readers, no mark is retained.
static READERS: AtomicUsize = AtomicUsize::new(0);

/// The process that the readers run in. A forked child has no readers, and must not wait for a lock
/// that one may have held.
static READING: AtomicU32 = AtomicU32::new(0);

fn marks() -> MutexGuard<'static, Marks> {
    // Pushing a mark is all that happens under the lock, and cannot panic.
    MARKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks this moment in recordings of the program: "evicted 300 pages". Snapshots and
/// [`minimize`](crate::minimize()) mark themselves.
///
/// Without a recording this does nothing. Otherwise it takes a lock, so it is not meant for events
/// that happen a thousand times a second.
///
/// ```
/// memreport::mark("compaction");
/// ```
pub fn mark(words: impl Into<Cow<'static, str>>) {
    mark_with(|| words.into());
}

/// Returns whether this process has readers.
pub(crate) fn has_readers() -> bool {
    // Relaxed: a mark at the moment when a reader is created may be missed.
    READERS.load(Relaxed) > 0 && READING.load(Relaxed) == std::process::id()
}

/// Marks this moment. The text is created only if there are readers.
pub(crate) fn mark_with(words: impl FnOnce() -> Cow<'static, str>) {
    record(|| Mark { time: Instant::now(), words: words(), event: None });
}

/// Marks the end of a cycle of work.
pub(super) fn mark_cycle(event: &MemoryEvent) {
    record(|| Mark {
        time: Instant::now(),
        words: event.words().into(),
        event: Some(event.clone()),
    });
}

fn record(mark: impl FnOnce() -> Mark) {
    if !has_readers() {
        return;
    }
    as_own(|| {
        let mark = mark();
        let mut marks = marks();
        if marks.last.len() >= MAX_RETAINED {
            marks.last.pop_front();
            marks.before += 1;
        }
        marks.last.push_back(mark);
    });
}

/// A reader that receives each mark once. Marks beyond the retained ones are lost.
#[derive(Debug)]
pub struct MarkReader {
    next: u64,
}

impl Default for MarkReader {
    /// Creates a reader of the marks from now on.
    fn default() -> Self {
        let marks = marks();
        READING.store(std::process::id(), Relaxed);
        READERS.fetch_add(1, Relaxed);
        MarkReader { next: marks.before + marks.last.len() as u64 }
    }
}

impl MarkReader {
    /// Returns the marks since the last call.
    pub fn take(&mut self) -> Vec<Mark> {
        self.take_from(&marks())
    }

    /// Returns the marks since the last call, or none while another thread sets one. A thread that
    /// others wait for must not wait for the lock: they may hold it.
    pub fn try_take(&mut self) -> Vec<Mark> {
        MARKS.try_lock().map_or_else(|_| Vec::new(), |marks| self.take_from(&marks))
    }

    fn take_from(&mut self, marks: &Marks) -> Vec<Mark> {
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
        for _ in 0..MAX_RETAINED + 10 {
            mark("many");
        }
        assert_eq!(take(&mut reader).len(), MAX_RETAINED);
        drop(reader);
        assert_eq!(marks().last.capacity(), 0, "nothing is kept for nobody");
    }
}

//! Times cycles of work on the program's memory: a collection of garbage, an eviction, a compaction.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::memory_event::{MemoryEvent, Slice};
use super::on_alloc::as_own;
use super::{listeners, mark};

/// Begins a cycle of the program's own: its collector, its arenas, its caches. Those who listen are told when it is finished or
/// dropped.
///
/// While nobody listens, it costs next to nothing.
///
/// ```
/// use std::sync::mpsc::channel;
///
/// let (events, heard) = channel();
/// let registration = memreport::on_memory_event(move |event| {
///     let _ = events.send((event.reason.clone(), event.slices.len()));
/// });
/// let mut pages = vec![vec![0_u8; 4096]; 100];
/// let mut cycle = memreport::cycle("too many pages");
/// while pages.len() > 10 {
///     cycle.slice(|| pages.truncate(pages.len() - 45));
/// }
/// cycle.finish();
/// assert_eq!(heard.recv()?, ("too many pages".into(), 2));
/// # drop(registration);
/// # Ok::<(), std::sync::mpsc::RecvError>(())
/// ```
pub fn cycle(reason: impl Into<Cow<'static, str>>) -> Cycle {
    Cycle {
        event: MemoryEvent {
            // Relaxed: only a number.
            number: NEXT.fetch_add(1, Relaxed),
            reason: reason.into(),
            nonincremental_reason: None,
            slices: Vec::new(),
        },
        is_marked: true,
    }
}

/// A cycle that goes on: see [`cycle`].
#[derive(Debug)]
#[must_use = "it is over when this is dropped"]
pub struct Cycle {
    event: MemoryEvent,
    is_marked: bool,
}

impl Cycle {
    /// Says why the work is done all at once, where it could be done in pieces.
    pub fn nonincremental(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.event.nonincremental_reason = Some(reason.into());
        self
    }

    /// Does a piece of the work, and notes how long it takes. It counts as well if it panics.
    pub fn slice<R>(&mut self, work: impl FnOnce() -> R) -> R {
        /// Ends the slice however the work ends.
        struct Ends<'c>(&'c mut Vec<Slice>, Instant);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                let slice = Slice { start: self.1, end: Instant::now() };
                as_own(|| self.0.push(slice));
            }
        }
        let _ends = listeners::is_heard().then(|| Ends(&mut self.event.slices, Instant::now()));
        work()
    }

    /// Ends the cycle, and tells those who listen, on this thread.
    pub fn finish(self) {}

    /// The caller marks recordings itself.
    pub(crate) fn unmarked(mut self) -> Self {
        self.is_marked = false;
        self
    }
}

impl Drop for Cycle {
    fn drop(&mut self) {
        if !listeners::is_heard() {
            return;
        }
        if self.is_marked {
            mark::mark_with(|| self.event.words().into());
        }
        listeners::keep(&self.event);
        listeners::tell(&self.event);
    }
}

/// The number of the next cycle.
static NEXT: AtomicU64 = AtomicU64::new(1);

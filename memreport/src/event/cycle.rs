//! Times cycles of work on the program's memory: a collection of garbage, an eviction, a
//! compaction.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::memory_event::{MemoryEvent, Slice};
use super::on_alloc::as_own;
use super::{listeners, mark};

/// Begins a cycle of the program's own work on memory: a garbage collection, a cache eviction.
///
/// Handlers of [`on_memory_event`](crate::on_memory_event) are called when it is finished or
/// dropped, and recordings have its slices. Without either, it costs next to nothing.
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
        records_mark: true,
        is_discarded: false,
    }
}

/// A running cycle. See [`cycle`].
#[derive(Debug)]
#[must_use = "it is over when this is dropped"]
pub struct Cycle {
    event: MemoryEvent,
    records_mark: bool,
    is_discarded: bool,
}

impl Cycle {
    /// Sets the reason why the work is done all at once, although it could be done in slices.
    pub fn nonincremental(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.event.nonincremental_reason = Some(reason.into());
        self
    }

    /// Does one slice of the work and records its duration, also if it panics.
    pub fn slice<R>(&mut self, work: impl FnOnce() -> R) -> R {
        /// Ends the slice on return and on a panic.
        struct Ends<'c>(&'c mut Vec<Slice>, Instant);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                let slice = Slice { start: self.1, end: Instant::now() };
                as_own(|| self.0.push(slice));
            }
        }
        let _ends = is_observed().then(|| Ends(&mut self.event.slices, Instant::now()));
        work()
    }

    /// Ends the cycle and calls the handlers, on this thread.
    pub fn finish(self) {}

    /// Ends the cycle without calling a handler, because its work is done again in another cycle.
    #[cfg(unix)]
    pub(crate) fn discard(mut self) {
        self.is_discarded = true;
    }

    /// Suppresses the mark in recordings, because the caller makes its own.
    pub(crate) fn without_mark(mut self) -> Self {
        self.records_mark = false;
        self
    }
}

impl Drop for Cycle {
    fn drop(&mut self) {
        if self.is_discarded {
            return;
        }
        if self.records_mark {
            mark::mark_cycle(&self.event);
        }
        if !listeners::has_listeners() {
            return;
        }
        listeners::retain_event(&self.event);
        listeners::notify(&self.event);
    }
}

/// Returns whether handlers or a recording receive the slices.
fn is_observed() -> bool {
    listeners::has_listeners() || mark::has_readers()
}

/// The number of the next cycle.
static NEXT: AtomicU64 = AtomicU64::new(1);

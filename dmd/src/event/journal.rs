//! What one thread allocates and frees while somebody watches: the truth that measurements are held to.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use super::events::Event;
use crate::mem::pages::PageList;
use crate::sample::plan;

/// An event, and which it is of those of all watched threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedEvent {
    pub(crate) number: u64,
    pub(crate) event: Event,
}

std::thread_local! {
    static CURRENT: Cell<Option<&'static Journal>> = const { Cell::new(None) };
}

/// Returns the journal of this thread, if it has one.
pub(crate) fn current() -> Option<&'static Journal> {
    CURRENT.try_with(Cell::get).ok().flatten()
}

/// Sets the journal of this thread, and returns the one before.
pub(crate) fn set_current(journal: Option<&'static Journal>) -> Option<&'static Journal> {
    CURRENT.try_with(|current| current.replace(journal)).ok().flatten()
}

/// The number of the next event.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The events of one thread, in their order.
#[derive(Debug)]
pub(crate) struct Journal {
    events: Mutex<PageList<NumberedEvent>>,
}

/// Whether there was ever a journal: threads keep theirs.
static WAS_EVER_CREATED: AtomicBool = AtomicBool::new(false);

/// Whether there was ever a journal.
pub(crate) fn was_ever_created() -> bool {
    WAS_EVER_CREATED.load(Relaxed)
}

impl Journal {
    pub(crate) fn new() -> Self {
        // From the first journal on, the hooks look whether their thread has one.
        WAS_EVER_CREATED.store(true, Relaxed);
        plan::start_events();
        Journal { events: Mutex::new(PageList::new()) }
    }

    /// The events so far; the journal is empty after this.
    pub(crate) fn take(&self) -> Vec<NumberedEvent> {
        let mut list = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let events = list.as_slice().to_vec();
        list.truncate(0);
        events
    }

    #[cold]
    pub(crate) fn record(&self, event: Event) {
        // Never contended, and never waited for: only the watched thread comes here while it is watched.
        if let Ok(mut events) = self.events.try_lock() {
            // Relaxed: a block is noted before it is handed out, and what gives it back comes after that.
            let number = NEXT.fetch_add(1, Relaxed);
            // An event that is lost is counted there.
            let _ = events.push(NumberedEvent { number, event });
        }
    }

    /// Appends events that a nested journal recorded on this thread.
    pub(crate) fn append(&self, nested: &[NumberedEvent]) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        for event in nested {
            // As in `record`.
            let _ = events.push(*event);
        }
    }
}

//! The journal of one thread: every block that it allocates and frees while it is watched.
//!
//! Tests compare measurements with it.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use super::events::Event;
use crate::mem::pages::PageList;
use crate::sample::plan;

/// An event with its number among the events of all watched threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedEvent {
    pub(crate) number: u64,
    pub(crate) event: Event,
}

memreport::__hook_local! {
    static CURRENT: Cell<Option<&'static Journal>> = Cell::new(None), "dmd_hook_journal"
}

/// Returns the journal of this thread, if it has one.
pub(crate) fn current() -> Option<&'static Journal> {
    CURRENT.try_with(Cell::get).ok().flatten()
}

/// Sets the journal of this thread, and returns the previous one.
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

/// True once a journal was created. Threads keep their journals, so it stays true.
static WAS_EVER_CREATED: AtomicBool = AtomicBool::new(false);

/// Returns whether a journal was ever created.
pub(crate) fn was_ever_created() -> bool {
    WAS_EVER_CREATED.load(Relaxed)
}

impl Journal {
    pub(crate) fn new() -> Self {
        // From the first journal on, hooks check whether their thread has one.
        WAS_EVER_CREATED.store(true, Relaxed);
        plan::start_events();
        Journal { events: Mutex::new(PageList::new()) }
    }

    /// Takes the events so far, and leaves the journal empty.
    pub(crate) fn take(&self) -> Vec<NumberedEvent> {
        let mut list = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let events = list.as_slice().to_vec();
        list.truncate(0);
        events
    }

    #[cold]
    pub(crate) fn record(&self, event: Event) {
        // Never contended: only the watched thread takes the lock while it is watched.
        if let Ok(mut events) = self.events.try_lock() {
            // Relaxed: a block's allocation is recorded before the block is returned, and so before
            // its free.
            let number = NEXT.fetch_add(1, Relaxed);
            // The list counts an event that it loses.
            let _ = events.push(NumberedEvent { number, event });
        }
    }

    /// Appends events that a nested journal recorded on this thread.
    pub(crate) fn append(&self, nested: &[NumberedEvent]) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        for event in nested {
            // The list counts an event that it loses.
            let _ = events.push(*event);
        }
    }
}

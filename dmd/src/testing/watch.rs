//! Watches the allocations and frees of one thread, independent of other threads.

use std::sync::{Mutex, PoisonError};

use crate::event::journal::{Journal, NumberedEvent, current, set_current};

/// Journals that are not in use. They are never freed, because a hook may hold a reference.
static POOL: Mutex<Vec<&'static Journal>> = Mutex::new(Vec::new());

/// Records every block that this thread allocates or frees, until it is dropped.
#[derive(Debug)]
pub(super) struct ThreadWatch {
    journal: &'static Journal,
    /// The journal of an outer watch, which is restored at the end.
    outer: Option<&'static Journal>,
}

impl ThreadWatch {
    pub(super) fn begin() -> Self {
        // The watch's own allocations are in no journal.
        let outer = set_current(None);
        let pooled = POOL.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let journal = pooled.unwrap_or_else(|| Box::leak(Box::new(Journal::new())));
        journal.take();
        set_current(Some(journal));
        ThreadWatch { journal, outer }
    }

    /// Ends the watch, and returns its events in order.
    pub(super) fn end(self) -> Vec<NumberedEvent> {
        let events = self.paused(|events| events.to_vec());
        if let Some(outer) = self.outer {
            outer.append(&events);
        }
        events
    }

    /// Pauses the watch, and calls `work` with the events so far.
    pub(super) fn paused<R>(&self, work: impl FnOnce(&[NumberedEvent]) -> R) -> R {
        let _pause = Pause { journal: set_current(None) };
        let events = self.journal.take();
        self.journal.append(&events);
        work(&events)
    }
}

/// Continues the watch when it is dropped.
struct Pause {
    journal: Option<&'static Journal>,
}

impl Drop for Pause {
    fn drop(&mut self) {
        set_current(self.journal);
    }
}

impl Drop for ThreadWatch {
    fn drop(&mut self) {
        // The watched code may have panicked. A watch that began later may still be current: then
        // it goes on, and this journal stays with it.
        let is_current = current().is_some_and(|journal| std::ptr::eq(journal, self.journal));
        if is_current {
            set_current(None);
            POOL.lock().unwrap_or_else(PoisonError::into_inner).push(self.journal);
            set_current(self.outer);
        }
    }
}

//! Watching one thread: what it allocates and gives back, whatever other threads do meanwhile.

use std::sync::{Mutex, PoisonError};

use crate::event::journal::{Journal, NumberedEvent, set_current};

/// Journals that are not in use. A thread's hook holds a reference, so they live for ever, and are used again.
static POOL: Mutex<Vec<&'static Journal>> = Mutex::new(Vec::new());

/// Hears of every block that this thread makes or gives back, as long as it lives.
#[derive(Debug)]
pub(super) struct Watch {
    journal: &'static Journal,
    /// Who watched the thread before, and will again.
    outer: Option<&'static Journal>,
}

impl Watch {
    pub(super) fn begin() -> Self {
        // What watching needs itself is nobody's.
        let outer = set_current(None);
        let pooled = POOL.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let journal = pooled.unwrap_or_else(|| Box::leak(Box::new(Journal::new())));
        journal.take();
        set_current(Some(journal));
        Watch { journal, outer }
    }

    /// The events in their order.
    pub(super) fn end(self) -> Vec<NumberedEvent> {
        self.stop();
        let events = self.journal.take();
        if let Some(outer) = self.outer {
            outer.append(&events);
        }
        events
    }

    fn stop(&self) {
        set_current(None);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // What was watched may have panicked.
        self.stop();
        POOL.lock().unwrap_or_else(PoisonError::into_inner).push(self.journal);
        set_current(self.outer);
    }
}

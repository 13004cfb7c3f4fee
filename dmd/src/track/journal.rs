//! What one thread allocates and frees while somebody watches: the truth that measurements are held to.

use std::cell::RefCell;

use super::pages::PageList;

/// An event of the watched thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Born { address: usize, usable: usize },
    Freed { address: usize, requested: usize, usable: usize, site: super::sites::SiteId },
}

/// The events of one thread, in their order.
#[derive(Debug)]
pub(crate) struct Journal {
    events: RefCell<PageList<Event>>,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Journal { events: RefCell::new(PageList::new()) }
    }

    #[cold]
    pub(crate) fn note(&self, event: Event) {
        // Only the watched thread comes here, and never from within: pages are not blocks.
        if let Ok(mut events) = self.events.try_borrow_mut() {
            events.push(event);
        }
    }
}

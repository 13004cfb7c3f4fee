//! Calls registered handlers at the end of each cycle of work on memory, and keeps the last events
//! for snapshots.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::callback::{Registration, panic_message};
use super::mark;
use super::memory_event::MemoryEvent;
use super::on_alloc::as_own;

type Handler = Arc<dyn Fn(&MemoryEvent) + Send + Sync>;

/// The registered handlers, the last events, and the handlers' panics.
struct Listeners {
    next: u64,
    handlers: Vec<(u64, &'static str, Handler)>,
    retained: VecDeque<MemoryEvent>,
    panics: VecDeque<String>,
}

static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners {
    next: 0,
    handlers: Vec::new(),
    retained: VecDeque::new(),
    panics: VecDeque::new(),
});

/// The number of handlers and other listeners for whom events are retained.
static LISTENER_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The most events retained for snapshots, and the most panics.
const MAX_RETAINED: usize = 64;

fn listeners() -> MutexGuard<'static, Listeners> {
    // No code of this crate panics with the lock held, and no foreign code runs.
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether events have any effect.
pub(super) fn has_listeners() -> bool {
    // Relaxed: an event at the moment when a listener registers may be missed.
    LISTENER_COUNT.load(Relaxed) > 0 || mark::has_readers()
}

/// Registers a handler that is called at the end of each cycle of work on memory, on the cycle's
/// thread.
///
/// It stays registered until the returned registration is dropped. Handlers may register and drop
/// others. A handler is not called for events that happen within itself. If a handler panics, the
/// notes of the next snapshot name it, and the others are still called.
///
/// While a handler is registered, snapshots contain the last 64 events.
///
/// ```
/// let registration = memreport::on_memory_event(|event| {
///     assert_ne!(event.duration(), std::time::Duration::MAX);
/// });
/// memreport::minimize();
/// let snapshot = memreport::snapshot();
/// assert!(snapshot.events.iter().any(|event| event.reason == "minimize"));
/// # drop(registration);
/// ```
pub fn on_memory_event<F: Fn(&MemoryEvent) + Send + Sync + 'static>(handler: F) -> Registration {
    let mut listeners = listeners();
    let id = listeners.next;
    listeners.next += 1;
    listeners.handlers.push((id, std::any::type_name::<F>(), Arc::new(handler)));
    LISTENER_COUNT.fetch_add(1, Relaxed);
    Registration::new(id, unregister)
}

fn unregister(id: u64) {
    let mut listeners = listeners();
    let position = listeners.handlers.iter().position(|(of, ..)| *of == id);
    let entry = position.map(|position| listeners.handlers.remove(position));
    drop(listeners);
    if entry.is_some() {
        stop_retaining();
    }
    // Dropped without the lock: the values that a handler owns may have registrations of their own.
    drop(entry);
}

/// Starts retaining events for snapshots, also without handlers.
#[cfg(unix)]
pub(crate) fn start_retaining() {
    LISTENER_COUNT.fetch_add(1, Relaxed);
}

/// Stops retaining events for one listener. Without listeners, the retained events are dropped.
pub(crate) fn stop_retaining() {
    if LISTENER_COUNT.fetch_sub(1, Relaxed) == 1 {
        let retained = std::mem::take(&mut listeners().retained);
        drop(retained);
    }
}

pub(super) fn retain_event(event: &MemoryEvent) {
    if LISTENER_COUNT.load(Relaxed) == 0 {
        return;
    }
    as_own(|| {
        let mut listeners = listeners();
        if listeners.retained.len() >= MAX_RETAINED {
            listeners.retained.pop_front();
        }
        listeners.retained.push_back(event.clone());
    });
}

std::thread_local! {
    /// The handlers that run on this thread.
    static RUNNING: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn running<R>(with: impl FnOnce(&mut Vec<u64>) -> R) -> Option<R> {
    RUNNING
        .try_with(|running| running.try_borrow_mut().ok().map(|mut list| with(&mut list)))
        .ok()?
}

pub(super) fn notify(event: &MemoryEvent) {
    // Copied, so that handlers may register others.
    let called: Vec<_> = as_own(|| {
        let listeners = listeners();
        listeners
            .handlers
            .iter()
            .map(|(id, name, handler)| (*id, *name, Arc::clone(handler)))
            .collect()
    });
    for (id, name, handler) in called {
        if running(|list| list.contains(&id)) != Some(false) {
            continue;
        }
        running(|list| as_own(|| list.push(id)));
        let outcome = catch_unwind(AssertUnwindSafe(|| handler(event)));
        running(|list| list.retain(|running| *running != id));
        if let Err(panic) = outcome {
            let reason = &event.reason;
            let note = as_own(|| {
                format!(
                    "the handler {name} panicked at the event {reason} ({})",
                    panic_message(&*panic)
                )
            });
            let mut listeners = listeners();
            if listeners.panics.len() >= MAX_RETAINED {
                listeners.panics.pop_front();
            }
            as_own(|| listeners.panics.push_back(note));
        }
    }
}

/// Returns the last events, oldest first, and the handlers' panics since the last call.
pub(crate) fn last_events() -> (Vec<MemoryEvent>, Vec<String>) {
    let mut listeners = listeners();
    let panics = std::mem::take(&mut listeners.panics);
    (listeners.retained.iter().cloned().collect(), panics.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::cycle::cycle;
    use crate::minimize;

    /// Returns the events with a reason that starts with `prefix`, of those that `work` causes.
    fn heard(prefix: &str, work: impl FnOnce()) -> Vec<String> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (list, prefix) = (Arc::clone(&heard), prefix.to_owned());
        let registration = on_memory_event(move |event| {
            if event.reason.starts_with(&prefix) {
                list.lock().unwrap().push(event.clone());
            }
        });
        work();
        drop(registration);
        let events: Vec<MemoryEvent> = std::mem::take(&mut *heard.lock().unwrap());
        let numbers: std::collections::BTreeSet<_> =
            events.iter().map(|event| event.number).collect();
        assert_eq!(numbers.len(), events.len(), "each has its own");
        events.iter().map(|event| format!("{} {}", event.reason, event.slices.len())).collect()
    }

    #[test]
    fn a_cycle_tells_its_slices_when_it_is_over() {
        let events = heard("collector", || {
            let mut cycle = cycle("collector").nonincremental("the last page");
            assert_eq!(cycle.slice(|| 7), 7);
            cycle.slice(|| ());
            cycle.finish();
            drop(crate::cycle("collector"));
            let panicked = catch_unwind(|| crate::cycle("collector").slice(|| panic!("no")));
            assert!(panicked.is_err());
        });
        assert_eq!(events, ["collector 2", "collector 0", "collector 1"]);
        let event = MemoryEvent {
            number: 1,
            reason: "collector".into(),
            nonincremental_reason: Some("the last page".into()),
            slices: Vec::new(),
        };
        assert_eq!(event.words(), "collector: 0 slices, 0.000 ms, all at once: the last page");
    }

    #[test]
    fn a_handler_that_panics_is_named_and_loses_nothing() {
        let bad = on_memory_event(|event| {
            assert_ne!(event.reason, "planted", "no handler for this");
        });
        assert_eq!(heard("planted", || cycle("planted").finish()), ["planted 0"]);
        let (events, panics) = last_events();
        assert!(events.iter().any(|event| event.reason == "planted"));
        assert!(panics.iter().any(|note| note.contains("no handler for this")), "{panics:?}");
        drop(bad);
    }

    #[test]
    fn handlers_may_register_others_and_end_cycles_of_their_own() {
        let others: Arc<Mutex<Vec<Registration>>> = Arc::default();
        let (list, count) = (Arc::clone(&others), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&count);
        let outer = on_memory_event(move |event| {
            if event.reason == "nested" {
                counted.fetch_add(1, Relaxed);
                // The handler is not called again for this one.
                cycle("nested").finish();
                minimize();
                let mut list = list.lock().unwrap();
                list.clear();
                list.push(on_memory_event(|_| ()));
            }
        });
        let events = heard("nested", || {
            cycle("nested").finish();
            std::thread::spawn(|| cycle("nested").finish()).join().unwrap();
        });
        // The other handler receives both events, and those within the first.
        assert_eq!((count.load(Relaxed), events.len()), (2, 4));
        others.lock().unwrap().clear();
        drop(outer);
    }
}

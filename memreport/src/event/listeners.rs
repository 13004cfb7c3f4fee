//! Calls registered handlers at the end of each cycle of work on memory, and keeps the last events for snapshots.

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

/// Who listens, the events that were kept for snapshots, and which handlers have panicked.
struct Listening {
    next: u64,
    handlers: Vec<(u64, &'static str, Handler)>,
    kept: VecDeque<MemoryEvent>,
    panics: VecDeque<String>,
}

static LISTENING: Mutex<Listening> = Mutex::new(Listening {
    next: 0,
    handlers: Vec::new(),
    kept: VecDeque::new(),
    panics: VecDeque::new(),
});

/// How many handlers there are, and others for whom events are kept.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);

/// As many events are kept for snapshots, and as many panics.
const KEPT: usize = 64;

fn listening() -> MutexGuard<'static, Listening> {
    // Nothing of ours panics with the lock held, and no code of others runs.
    LISTENING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether anybody wants to know.
pub(super) fn is_heard() -> bool {
    // Relaxed: an event at the moment when somebody comes or goes may be heard or not.
    LISTENERS.load(Relaxed) > 0 || mark::is_read()
}

/// Has `handler` called at the end of each cycle of work on memory, on the thread on which it ends, until the returned
/// registration is dropped. Handlers may register and drop others. An event that happens within a handler is not told to
/// that handler again. One that panics is named in the notes of the next snapshot, and the others are called all the same.
///
/// While somebody listens, snapshots have the last 64 events.
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
    let mut listening = listening();
    let id = listening.next;
    listening.next += 1;
    listening.handlers.push((id, std::any::type_name::<F>(), Arc::new(handler)));
    LISTENERS.fetch_add(1, Relaxed);
    Registration::new(id, forget)
}

fn forget(id: u64) {
    let mut listening = listening();
    let position = listening.handlers.iter().position(|(of, ..)| *of == id);
    let entry = position.map(|position| listening.handlers.remove(position));
    drop(listening);
    if entry.is_some() {
        stop_keeping();
    }
    // Dropped without the lock: what the handler owns may have registrations of its own.
    drop(entry);
}

/// From now on events are kept for snapshots, also without handlers.
#[cfg(unix)]
pub(crate) fn start_keeping() {
    LISTENERS.fetch_add(1, Relaxed);
}

/// One less for whom events are kept. Nothing is kept for nobody.
pub(crate) fn stop_keeping() {
    if LISTENERS.fetch_sub(1, Relaxed) == 1 {
        let kept = std::mem::take(&mut listening().kept);
        drop(kept);
    }
}

pub(super) fn keep(event: &MemoryEvent) {
    if LISTENERS.load(Relaxed) == 0 {
        return;
    }
    as_own(|| {
        let mut listening = listening();
        if listening.kept.len() >= KEPT {
            listening.kept.pop_front();
        }
        listening.kept.push_back(event.clone());
    });
}

std::thread_local! {
    /// The handlers that this thread is in.
    static RUNNING: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn running<R>(with: impl FnOnce(&mut Vec<u64>) -> R) -> Option<R> {
    RUNNING
        .try_with(|running| running.try_borrow_mut().ok().map(|mut list| with(&mut list)))
        .ok()?
}

pub(super) fn tell(event: &MemoryEvent) {
    // Copied out, so that handlers may register others.
    let called: Vec<_> = as_own(|| {
        let listening = listening();
        listening
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
            let mut listening = listening();
            if listening.panics.len() >= KEPT {
                listening.panics.pop_front();
            }
            as_own(|| listening.panics.push_back(note));
        }
    }
}

/// The last events, the oldest first, and the panics of handlers that nobody was told of.
pub(crate) fn last() -> (Vec<MemoryEvent>, Vec<String>) {
    let mut listening = listening();
    let panics = std::mem::take(&mut listening.panics);
    (listening.kept.iter().cloned().collect(), panics.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::cycle::cycle;
    use crate::minimize;

    /// The reasons that begin so, of the events that a handler hears while `work` is done.
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
        let (events, panics) = last();
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
                // It would be told of this one again.
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
        // The other handler hears both, and those within the first.
        assert_eq!((count.load(Relaxed), events.len()), (2, 4));
        others.lock().unwrap().clear();
        drop(outer);
    }
}

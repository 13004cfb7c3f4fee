//! Releases memory that the program does not need: its caches, and the allocator's unused memory.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::allocator::declaration::{heap_counters, release_unused};
use crate::event::callback::{Registration, panic_message};
use crate::event::cycle::cycle;
use crate::event::mark::mark_with;
use crate::process::resident;

type Hook = Arc<dyn Fn() + Send + Sync>;

static HOOKS: Mutex<Hooks> = Mutex::new(Hooks { next: 0, list: Vec::new() });

struct Hooks {
    next: u64,
    list: Vec<(u64, &'static str, Hook)>,
}

fn hooks() -> MutexGuard<'static, Hooks> {
    // No code of this crate panics with the lock held, so a poisoned list is still whole.
    HOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a hook that releases memory, until the returned registration is dropped.
///
/// The hook empties a cache, shrinks a buffer or closes idle connections. It runs on any thread,
/// and must not wait long for a lock.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// let cache = Arc::new(Mutex::new(vec![0_u8; 100_000]));
/// let emptied = Arc::clone(&cache);
/// let registration = memreport::on_minimize(move || {
///     if let Ok(mut cache) = emptied.try_lock() {
///         *cache = Vec::new();
///     }
/// });
/// memreport::minimize();
/// assert_eq!(cache.lock().unwrap().capacity(), 0);
/// # drop(registration);
/// ```
pub fn on_minimize<F: Fn() + Send + Sync + 'static>(hook: F) -> Registration {
    let mut hooks = hooks();
    let id = hooks.next;
    hooks.next += 1;
    hooks.list.push((id, std::any::type_name::<F>(), Arc::new(hook)));
    Registration::new(id, unregister)
}

fn unregister(id: u64) {
    let mut hooks = hooks();
    let position = hooks.list.iter().position(|(of, ..)| *of == id);
    let entry = position.map(|position| hooks.list.swap_remove(position));
    drop(hooks);
    // Dropped without the lock: the values that a hook owns may have registrations of their own.
    drop(entry);
}

/// The result of [`minimize`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Minimized {
    /// The number of hooks that were called.
    pub hooks: usize,
    /// Bytes in live blocks before and after, if an allocator is declared.
    pub heap: Option<(u64, u64)>,
    /// Resident bytes before and after, if the system provides them.
    pub resident: Option<(u64, u64)>,
    /// The hooks that panicked. The others were still called.
    pub notes: Vec<String>,
}

impl fmt::Display for Minimized {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hooks = if self.hooks == 1 { "hook was" } else { "hooks were" };
        write!(out, "{} {hooks} called", self.hooks)?;
        for (what, amounts) in [("heap-allocated", self.heap), ("resident", self.resident)] {
            if let Some((before, after)) = amounts {
                write!(out, "; {what}: {before} bytes before, {after} after")?;
            }
        }
        Ok(())
    }
}

/// Calls every registered hook, then makes the allocator release its unused memory to the system.
///
/// It corresponds to Firefox's "minimize memory usage". Other threads continue meanwhile, so the
/// amounts are of this moment.
pub fn minimize() -> Minimized {
    let live = || heap_counters().map(|counters| counters.live_bytes());
    let before = (live(), resident());
    let mut minimized = Minimized::default();
    // Copied, so that hooks may register others.
    let called: Vec<_> =
        hooks().list.iter().map(|(_, name, hook)| (*name, Arc::clone(hook))).collect();
    let mut releasing = cycle("minimize").without_mark();
    for (name, hook) in called {
        minimized.hooks += 1;
        let outcome = releasing.slice(|| catch_unwind(AssertUnwindSafe(|| hook())));
        if let Err(panic) = outcome {
            minimized.notes.push(format!("the hook {name} panicked ({})", panic_message(&*panic)));
        }
    }
    releasing.finish();
    let mut trimming = cycle("trim").without_mark();
    trimming.slice(release_unused);
    trimming.finish();
    let pair = |before: Option<u64>, after: Option<u64>| Some((before?, after?));
    minimized.heap = pair(before.0, live());
    minimized.resident = pair(before.1, resident());
    mark_with(|| format!("minimize: {minimized}").into());
    minimized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_panics_is_named_and_the_others_are_called() {
        let called = Arc::new(Mutex::new(0));
        let counts = Arc::clone(&called);
        let bad = on_minimize(|| panic!("no cache"));
        let good = on_minimize(move || *counts.lock().unwrap() += 1);
        let minimized = minimize();
        assert!(minimized.hooks >= 2);
        assert!(minimized.notes.iter().any(|note| note.contains("no cache")), "{minimized:?}");
        assert_eq!(*called.lock().unwrap(), 1);
        drop((bad, good));
        minimize();
        assert_eq!(*called.lock().unwrap(), 1);
    }
}

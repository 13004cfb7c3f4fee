//! The threads and scopes that observers are limited to, as numbers that hooks compare.
//!
//! Hooks leave out what no observer sees. Each observer then leaves out what others see.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use memreport::__private::{current_scope, scope_link, scope_name_number};

use super::thread::{self, Thread};

/// The most threads, and scopes, that hooks compare. With more, hooks leave out none.
const PLACES: usize = 16;

/// A set of numbers that hooks read without a lock. 0 is no number.
struct Numbers {
    has_all: AtomicBool,
    places: [AtomicU64; PLACES],
}

impl Numbers {
    const fn new() -> Self {
        Numbers { has_all: AtomicBool::new(true), places: [const { AtomicU64::new(0) }; PLACES] }
    }

    fn has_all(&self) -> bool {
        // Acquire, with the Release of `set`: the numbers are there.
        self.has_all.load(Acquire)
    }

    fn has(&self, number: u64) -> bool {
        number != 0 && self.places.iter().any(|place| place.load(Relaxed) == number)
    }

    /// Sets the numbers; `None` is all. Numbers that stay keep their places, so hooks find them
    /// meanwhile.
    fn set(&self, numbers: Option<&[u64]>) {
        let Some(numbers) = numbers.filter(|numbers| numbers.len() <= PLACES) else {
            return self.has_all.store(true, Relaxed);
        };
        for place in &self.places {
            if !numbers.contains(&place.load(Relaxed)) {
                place.store(0, Relaxed);
            }
        }
        for number in numbers.iter().filter(|number| !self.has(**number)) {
            if let Some(place) = self.places.iter().find(|place| place.load(Relaxed) == 0) {
                place.store(*number, Relaxed);
            }
        }
        self.has_all.store(false, Release);
    }
}

static THREADS: Numbers = Numbers::new();
static SCOPES: Numbers = Numbers::new();

/// Is odd while an observer is limited to a thread's name. Threads read their names again when it
/// has changed.
static NAMES: AtomicU32 = AtomicU32::new(0);

/// The bit of numbers that stand for a thread's name.
const NAME: u64 = 1 << 63;

/// Returns the number of a thread's name, of which the kernel keeps 15 bytes.
pub(crate) fn thread_name_number(name: &[u8]) -> u64 {
    let name = &name[..name.len().min(15)];
    // FNV-1a.
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    hash | NAME
}

/// The threads and scopes that one observer sees. An empty list is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The kernel's numbers of threads, and the numbers of their names.
    threads: Vec<u64>,
    /// The numbers of names.
    scopes: Vec<u64>,
}

impl Limit {
    pub(crate) fn add_thread(&mut self, id: u32) {
        self.threads.push(id.into());
    }

    pub(crate) fn add_thread_name(&mut self, name: &str) {
        self.threads.push(thread_name_number(name.as_bytes()));
    }

    pub(crate) fn add_scope(&mut self, name: &str) {
        self.scopes.push(scope_name_number(name).into());
    }

    /// Returns whether the observer sees what the thread of this number allocates in this scope.
    pub(crate) fn sees(&self, thread: u32, scope: u16) -> bool {
        let of_thread = || thread::numbers(thread).iter().any(|one| self.threads.contains(one));
        (self.threads.is_empty() || of_thread())
            && (self.scopes.is_empty() || is_in(scope, |name| self.scopes.contains(&name)))
    }
}

/// Returns whether the scope or one around it has a name that is wanted.
fn is_in(mut scope: u16, wants: impl Fn(u64) -> bool) -> bool {
    while scope != 0 {
        let (parent, name) = scope_link(scope);
        if name != 0 && wants(name.into()) {
            return true;
        }
        // A scope has a smaller number than the scopes inside it.
        scope = parent.min(scope - 1);
    }
    false
}

/// Returns whether some observer sees what this thread allocates now. Hooks call it.
pub(crate) fn sees(thread: &Thread) -> bool {
    let names = NAMES.load(Relaxed);
    if names % 2 == 1 {
        thread.learn_name(names);
    }
    let of_thread = || thread::numbers(thread.number()).iter().any(|one| THREADS.has(*one));
    (THREADS.has_all() || of_thread())
        && (SCOPES.has_all() || is_in(current_scope(), |name| SCOPES.has(name)))
}

/// Sets the limits of all observers. The caller holds their lock.
pub(crate) fn set<'l>(limits: &(impl Iterator<Item = &'l Limit> + Clone)) {
    let union = |list: fn(&Limit) -> &Vec<u64>| {
        let lists = limits.clone().map(list);
        let mut all: Vec<u64> = lists.clone().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        lists.clone().all(|list| !list.is_empty()).then_some(all)
    };
    let is_by_name = limits.clone().flat_map(|limit| &limit.threads).any(|one| one & NAME != 0);
    let names = NAMES.load(Relaxed);
    let step = if is_by_name == (names % 2 == 1) { 0 } else { 1 };
    NAMES.store(names.wrapping_add(step), Relaxed);
    THREADS.set(union(|limit| &limit.threads).as_deref());
    SCOPES.set(union(|limit| &limit.scopes).as_deref());
}

/// Has threads read their names again.
pub(crate) fn renew_names() {
    let _ = NAMES
        .fetch_update(Relaxed, Relaxed, |names| (names % 2 == 1).then(|| names.wrapping_add(2)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_stay_are_never_away() {
        let set = Numbers::new();
        assert!(set.has_all());
        set.set(Some(&[3, 5]));
        assert!(!set.has_all() && set.has(3) && set.has(5) && !set.has(4) && !set.has(0));
        let place = set.places.iter().position(|place| place.load(Relaxed) == 5);
        set.set(Some(&[4, 5]));
        assert!(!set.has(3) && set.has(4));
        assert_eq!(set.places.iter().position(|place| place.load(Relaxed) == 5), place);
        let many: Vec<u64> = (1..=17).collect();
        set.set(Some(&many));
        assert!(set.has_all(), "too many to compare");
        set.set(Some(&[]));
        assert!(!set.has_all() && !set.has(5));
    }

    #[test]
    fn an_observer_sees_its_threads_in_its_scopes_alone() {
        let run = || {
            Thread::current(|thread| {
                let own = thread::numbers(thread.number())[0];
                for (threads, scopes, expected) in [
                    (None, None, true),
                    (Some(own), None, true),
                    (Some(own + 1), None, false),
                    // This thread is in no scope.
                    (None, Some(1), false),
                    (Some(own), Some(1), false),
                    (Some(own + 1), Some(1), false),
                ] {
                    let list = |number: Option<u64>| number.into_iter().collect::<Vec<_>>();
                    let limit = Limit { threads: list(threads), scopes: list(scopes) };
                    set(&std::iter::once(&limit));
                    assert_eq!(sees(thread), expected, "{limit:?}");
                    assert_eq!(limit.sees(thread.number(), 0), expected, "{limit:?}");
                }
                set(&std::iter::once(&Limit::default()));
            })
        };
        let run = std::thread::spawn(run).join().expect("it does not panic");
        run.expect("the thread runs");
    }
}

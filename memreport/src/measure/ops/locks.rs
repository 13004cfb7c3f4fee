//! Waits for locks that other threads hold, for a time that all measurements of a collection share.

use core::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use super::Ops;

/// The time for a lock while the collection holds another one, for which the program then waits.
const NESTED: Duration = Duration::from_millis(5);

/// The number of attempts that only yield the processor. Most locks are held for less.
const YIELDS: u32 = 16;

/// The first and the longest pause between later attempts. They double.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];

/// The time that is left for waiting, and the number of locks that are held.
#[derive(Debug, Default)]
pub(super) struct LockTime {
    left: Cell<Duration>,
    held: Cell<usize>,
}

impl LockTime {
    pub(super) fn of(time: Duration) -> Self {
        LockTime { left: Cell::new(time), held: Cell::new(0) }
    }

    /// Counts a lock as held until the returned value is dropped.
    pub(super) fn hold(&self) -> Held<'_> {
        self.held.set(self.held.get() + 1);
        Held(self)
    }

    /// Calls `try_lock` until it succeeds or the time is over.
    #[cold]
    fn wait<G>(&self, try_lock: &mut dyn FnMut() -> Option<G>) -> Option<G> {
        let left = self.left.get();
        // A lock that is never released leaves half of the time to the next ones.
        let most = if self.held.get() > 0 { NESTED.min(left / 2) } else { left / 2 };
        let begin = Instant::now();
        let mut pause = PAUSES[0];
        let mut attempt = 0;
        let mut found = None;
        while found.is_none() {
            let waited = begin.elapsed();
            if waited >= most {
                break;
            }
            attempt += 1;
            if attempt <= YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(pause.min(most - waited));
                pause = PAUSES[1].min(pause * 2);
            }
            found = try_lock();
        }
        self.left.set(left.saturating_sub(begin.elapsed()));
        found
    }
}

/// A lock that is held.
pub(super) struct Held<'p>(&'p LockTime);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.set(self.0.held.get() - 1);
    }
}

impl Ops<'_> {
    /// Calls `try_lock` until it succeeds, and returns its guard; `None` when the collection has no
    /// more time for locks. Then count the value as [`busy`](Self::busy).
    ///
    /// Pauses between attempts, so that the lock's holder goes on. A measurement outside a
    /// collection, as by [`measure`](crate::measure()), tries once.
    pub fn wait_for_lock<G>(&self, mut try_lock: impl FnMut() -> Option<G>) -> Option<G> {
        try_lock().or_else(|| self.collection.locks.wait(&mut try_lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_released_in_time_is_found() {
        let time = LockTime::of(Duration::from_secs(60));
        let mut attempts = 0;
        let found = time.wait(&mut || {
            attempts += 1;
            (attempts == 20).then_some(attempts)
        });
        assert_eq!(found, Some(20));
        assert!(time.left.get() < Duration::from_secs(60));
    }

    #[test]
    fn a_lock_that_is_never_released_leaves_time_to_the_next_ones() {
        let most = Duration::from_millis(40);
        let time = LockTime::of(most);
        assert_eq!(time.wait::<()>(&mut || None), None);
        assert!(time.left.get() <= most / 2, "half of it is spent");
        assert_eq!(LockTime::of(Duration::ZERO).wait(&mut || Some(())), None);
    }

    #[test]
    fn a_lock_is_held_until_its_value_is_dropped() {
        let time = LockTime::of(Duration::ZERO);
        let (outer, inner) = (time.hold(), time.hold());
        assert_eq!(time.held.get(), 2);
        drop(inner);
        assert_eq!(time.held.get(), 1);
        drop(outer);
        assert_eq!(time.held.get(), 0);
    }
}

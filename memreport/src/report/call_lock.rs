//! A lock that a thread holds during a call of the program's code, and that is free in a child
//! which was forked meanwhile.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

/// The time between two attempts at a lock. Calls take longer.
const PAUSE: Duration = Duration::from_millis(1);

/// A lock without a value.
#[derive(Debug, Default)]
pub(super) struct CallLock {
    /// The process whose thread has the lock, or 0. A forked child inherits the number of its
    /// parent, whose thread is not in the child.
    locked_by: AtomicU32,
}

impl CallLock {
    /// Waits for the lock.
    pub(super) fn lock(&self) -> Locked<'_> {
        let own = std::process::id();
        loop {
            let by = self.locked_by.load(Relaxed);
            // Acquire: released when the lock before was dropped.
            if by != own && self.locked_by.compare_exchange(by, own, Acquire, Relaxed).is_ok() {
                return Locked(self);
            }
            thread::sleep(PAUSE);
        }
    }
}

/// A lock that is held.
pub(super) struct Locked<'l>(&'l CallLock);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Release: acquired by the next `lock`.
        self.0.locked_by.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn the_lock_of_a_parent_is_free_in_its_child() {
        let lock = CallLock::default();
        lock.locked_by.store(std::process::id() + 1, Relaxed);
        drop(lock.lock());
        assert_eq!(lock.locked_by.load(Relaxed), 0);
    }

    #[test]
    fn one_thread_at_a_time_has_the_lock() {
        let (lock, holders) = (CallLock::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let _locked = lock.lock();
                        assert_eq!(holders.fetch_add(1, Relaxed), 0);
                        thread::yield_now();
                        holders.fetch_sub(1, Relaxed);
                    }
                });
            }
        });
    }
}

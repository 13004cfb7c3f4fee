//! A word that threads wait on until another thread changes it. Hooks and signal handlers may use
//! it: it neither allocates nor changes `errno`.
#![cfg_attr(all(test, not(loom)), expect(unsafe_code, reason = "sets errno"))]

use std::time::Duration;

#[cfg(not(loom))]
use super::Current;
#[cfg(not(loom))]
use super::errno::keeping_errno;
#[cfg(not(loom))]
use super::system::System;
use crate::mem::sync::AtomicU32;
use crate::mem::sync::Ordering::SeqCst;
use crate::mem::sync::const_fn;

/// A counter of changes that threads wait for.
///
/// All accesses are sequentially consistent: a thread that announces itself, reads the counter and
/// then finds nothing to do is woken by every later change.
#[derive(Debug)]
pub(crate) struct Futex {
    changes: AtomicU32,
    #[cfg(loom)]
    queue: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl Futex {
    const_fn! {
        pub(crate) fn new() -> Self {
            Futex {
                changes: AtomicU32::new(0),
                #[cfg(loom)]
                queue: (loom::sync::Mutex::new(()), loom::sync::Condvar::new()),
            }
        }
    }

    /// Returns the number of changes, for [`wait`](Self::wait).
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(SeqCst)
    }

    /// Counts a change. It wakes nobody yet.
    pub(crate) fn change(&self) {
        self.changes.fetch_add(1, SeqCst);
    }
}

#[cfg(not(loom))]
impl Futex {
    /// Waits until the number of changes is another one than `seen`, at most for this time. It may
    /// return early.
    pub(crate) fn wait(&self, seen: u32, at_most: Duration) {
        keeping_errno(|| Current::wait_for_change(&self.changes, seen, at_most));
    }

    /// Wakes all threads that wait.
    pub(crate) fn wake(&self) {
        keeping_errno(|| Current::wake_all(&self.changes));
    }
}

/// The same with a lock, which is how the kernel does it.
#[cfg(loom)]
impl Futex {
    pub(crate) fn wait(&self, seen: u32, _at_most: Duration) {
        let guard = self.queue.0.lock().unwrap();
        if self.changes.load(SeqCst) == seen {
            drop(self.queue.1.wait(guard));
        }
    }

    pub(crate) fn wake(&self) {
        drop(self.queue.0.lock());
        self.queue.1.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_change_ends_the_wait_and_errno_stays() {
        static FUTEX: Futex = Futex::new();
        let seen = FUTEX.changes();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                FUTEX.change();
                FUTEX.wake();
            });
            while FUTEX.changes() == seen {
                FUTEX.wait(seen, Duration::from_secs(600));
            }
        });
        let errno = Current::errno();
        // SAFETY: the address is valid for the life of this thread.
        unsafe { *errno = 77 };
        // The number is another one, which is an error to the kernel.
        FUTEX.wait(seen, Duration::from_secs(600));
        // SAFETY: as above.
        assert_eq!(unsafe { *errno }, 77);
    }
}

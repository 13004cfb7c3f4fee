//! Threads that join a budget.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::watch::ThreadWatch;
use crate::event::journal::NumberedEvent;

/// A handle by which other threads join a budget: their allocations count as well.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    joined: Arc<Mutex<Joined>>,
}

/// The threads that have joined, and the events of finished threads.
#[derive(Debug, Default)]
pub(in crate::testing) struct Joined {
    /// The number of threads that have joined and are not finished.
    pub(in crate::testing) running: usize,
    pub(in crate::testing) events: Vec<NumberedEvent>,
}

impl Threads {
    /// Runs `work` on this thread, and counts its allocations.
    ///
    /// ```
    /// # use dmd::testing::Budget;
    /// dmd::global_allocator!();
    ///
    /// # fn main() {
    /// # if std::env::var_os("DMD").is_none() { return; } // A doc test is not a test binary.
    /// let spent = Budget::new().assert(|threads| {
    ///     let threads = threads.clone();
    ///     std::thread::spawn(move || threads.join_in(|| vec![1_u8; 1000])).join().unwrap();
    /// });
    /// assert!(spent.bytes >= 1000);
    /// # }
    /// ```
    pub fn join_in<R>(&self, work: impl FnOnce() -> R) -> R {
        let _guard = JoinGuard::new(self);
        work()
    }

    pub(in crate::testing) fn joined(&self) -> MutexGuard<'_, Joined> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins a thread until its work returns or panics. Its events count in both cases.
struct JoinGuard<'t> {
    threads: &'t Threads,
    watch: Option<ThreadWatch>,
}

impl<'t> JoinGuard<'t> {
    fn new(threads: &'t Threads) -> Self {
        threads.joined().running += 1;
        JoinGuard { threads, watch: Some(ThreadWatch::begin()) }
    }
}

impl Drop for JoinGuard<'_> {
    fn drop(&mut self) {
        let events = self.watch.take().map(ThreadWatch::end).unwrap_or_default();
        let mut joined = self.threads.joined();
        joined.running -= 1;
        joined.events.extend(events);
    }
}

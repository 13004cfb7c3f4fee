//! Turns of collections: one runs at a time, first come, first served.
//!
//! A lock of std has no order: a thread that releases it and takes it again at once may keep the
//! others out.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::event::on_alloc::as_own;

/// The queue of the process's collections.
static COLLECTIONS: ProcessQueue = ProcessQueue::new();

/// The queue of one process, in a list of those of its ancestors.
///
/// A child that is forked during a collection inherits a queue whose turn no thread will end.
#[derive(Debug)]
struct ProcessQueue {
    /// The process that uses this queue, set by its first collection.
    pid: OnceLock<u32>,
    queue: Queue,
    next: OnceLock<Box<ProcessQueue>>,
}

/// The running collection, and those that wait.
#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    next: u64,
    line: Line,
    /// The start of the turn.
    since: Option<Instant>,
}

/// The most collections that keep their order. It has no block of the heap, because the tracker
/// compares the heap with the blocks that it knows while a turn lasts.
const LINE: usize = 64;

/// The number whose turn it is, and behind it those that wait, in the order of their arrival.
#[derive(Debug)]
struct Line {
    numbers: [u64; LINE],
    len: usize,
}

impl Line {
    fn first(&self) -> Option<u64> {
        self.numbers[..self.len].first().copied()
    }

    /// Adds a number at the end. Returns `false` if the line is full.
    fn push(&mut self, number: u64) -> bool {
        let has_room = self.len < LINE;
        if has_room {
            self.numbers[self.len] = number;
            self.len += 1;
        }
        has_room
    }

    fn remove(&mut self, number: u64) {
        if let Some(at) = self.numbers[..self.len].iter().position(|waiting| *waiting == number) {
            self.numbers.copy_within(at + 1..self.len, at);
            self.len -= 1;
        }
    }
}

/// The number of a turn. No other turn of the process has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnNumber(u64);

/// The right to collect, until it is dropped or revoked.
#[derive(Debug)]
pub(crate) struct Turn {
    queue: &'static Queue,
    number: u64,
}

impl Turn {
    /// Waits for the turn.
    pub(crate) fn wait() -> Self {
        loop {
            // A year: a deadline far enough, which no clock overflows.
            let deadline = Instant::now() + Duration::from_secs(365 * 24 * 3600);
            if let Ok(turn) = Turn::wait_until(deadline) {
                return turn;
            }
        }
    }

    /// Waits for the turn.
    ///
    /// # Errors
    ///
    /// Returns the time that the running collection has taken so far, at the deadline.
    pub(crate) fn wait_until(deadline: Instant) -> Result<Self, Duration> {
        COLLECTIONS.own().wait_until(deadline)
    }

    /// Returns the number, with which another thread can revoke the turn.
    pub(crate) fn number(&self) -> TurnNumber {
        TurnNumber(self.number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.queue.leave(self.number);
    }
}

/// Ends a turn on behalf of its owner. Dropping the turn then has no effect.
pub(crate) fn revoke(TurnNumber(number): TurnNumber) {
    COLLECTIONS.own().leave(number);
}

impl ProcessQueue {
    const fn new() -> Self {
        ProcessQueue { pid: OnceLock::new(), queue: Queue::new(), next: OnceLock::new() }
    }

    /// Returns the queue of this process.
    fn own(&'static self) -> &'static Queue {
        let pid = std::process::id();
        let mut place = self;
        while *place.pid.get_or_init(|| pid) != pid {
            place = place.next.get_or_init(|| as_own(|| Box::new(ProcessQueue::new())));
        }
        &place.queue
    }
}

impl Queue {
    const fn new() -> Self {
        let state = State { next: 0, line: Line { numbers: [0; LINE], len: 0 }, since: None };
        Queue { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn wait_until(&'static self, deadline: Instant) -> Result<Turn, Duration> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let mut is_in_line = false;
        loop {
            is_in_line = is_in_line || state.line.push(number);
            if state.line.first() == Some(number) {
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.line.remove(number);
                return Err(state.since.map_or(Duration::ZERO, |since| since.elapsed()));
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.since = Some(Instant::now());
        Ok(Turn { queue: self, number })
    }

    /// Ends the turn with this number, if it has not ended.
    fn leave(&self, number: u64) {
        let mut state = self.state();
        if state.line.first() == Some(number) {
            state.line.remove(number);
            drop(state);
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const FAR: Duration = Duration::from_secs(600);

    fn far() -> Instant {
        Instant::now() + FAR
    }

    /// Waits until so many are in the line.
    fn until_waiting(queue: &Queue, count: usize) {
        while queue.state().line.len < count {
            thread::yield_now();
        }
    }

    #[test]
    fn turns_are_taken_in_the_order_of_arrival() {
        static QUEUE: Queue = Queue::new();
        let first = QUEUE.wait_until(far()).expect("nobody waits");
        let (done, order) = mpsc::channel();
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let done = done.clone();
                let thread = thread::spawn(move || {
                    let turn = QUEUE.wait_until(far()).expect("the deadline is far");
                    done.send(number).expect("the test receives");
                    drop(turn);
                });
                until_waiting(&QUEUE, number + 2);
                thread
            })
            .collect();
        // The last one to ask is this thread, which asks again as soon as it may.
        drop(first);
        drop(QUEUE.wait_until(far()).expect("the deadline is far"));
        assert_eq!(order.try_iter().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
        for thread in threads {
            thread.join().expect("it does not panic");
        }
    }

    #[test]
    fn who_gives_up_leaves_the_line() {
        static QUEUE: Queue = Queue::new();
        let first = QUEUE.wait_until(far()).expect("nobody waits");
        assert!(QUEUE.wait_until(Instant::now()).is_err());
        drop(first);
        drop(QUEUE.wait_until(Instant::now()).expect("it is free"));
        assert_eq!(QUEUE.state().line.len, 0);
    }

    #[test]
    fn a_revoked_turn_does_not_end_the_next_one() {
        static QUEUE: Queue = Queue::new();
        let first = QUEUE.wait_until(far()).expect("nobody waits");
        QUEUE.leave(first.number);
        let second = QUEUE.wait_until(Instant::now()).expect("the first is revoked");
        drop(first);
        assert!(QUEUE.wait_until(Instant::now()).is_err(), "the second still runs");
        drop(second);
    }
}

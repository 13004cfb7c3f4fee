//! A queue between threads: taking from an empty one waits, and so does adding to a full one.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use memreport::MallocSizeOf;

/// A queue with many producers and consumers.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    #[malloc_size_of(ignore = "a number that threads wait at: it owns nothing")]
    changed: Condvar,
    limit: usize,
}

#[derive(Debug, MallocSizeOf)]
struct State<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Queue {
            state: Mutex::new(State { items: VecDeque::new(), is_closed: false }),
            changed: Condvar::new(),
            limit,
        }
    }

    /// Adds an item, unless the queue is closed.
    pub(crate) fn push(&self, item: T) {
        let full = |state: &mut State<T>| state.items.len() >= self.limit && !state.is_closed;
        let state = self.changed.wait_while(self.lock(), full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if !state.is_closed {
            state.items.push_back(item);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Takes the oldest item; `None` when the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<T> {
        let empty = |state: &mut State<T>| state.items.is_empty() && !state.is_closed;
        let state = self.changed.wait_while(self.lock(), empty);
        let item = state.unwrap_or_else(PoisonError::into_inner).items.pop_front();
        self.changed.notify_all();
        item
    }

    /// Closes the queue to new items.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_arrives_once() {
        let queue = Queue::new(3);
        let sum = std::thread::scope(|scope| {
            let take = || std::iter::from_fn(|| queue.pop()).sum::<u32>();
            let takers = [scope.spawn(take), scope.spawn(take)];
            (1..=100).for_each(|number| queue.push(number));
            queue.close();
            takers.map(|taker| taker.join().expect("it only adds")).iter().sum::<u32>()
        });
        assert_eq!(sum, 5050);
        queue.push(1);
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn what_waits_in_it_is_reported() {
        let queue = Queue::new(9);
        queue.push("a".repeat(100));
        queue.push("b".repeat(200));
        dmd::assert_fully_reported!(queue);
    }
}

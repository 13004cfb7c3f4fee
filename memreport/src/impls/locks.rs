//! Measures locks. *Exact*, or *busy* if another thread holds them for longer than the collection
//! waits.
//!
//! On Linux and Windows a lock itself owns nothing. Where std's locks use pthreads, their blocks
//! are not counted: a *lower bound*. The value in a poisoned lock is measured as usual.

use std::sync::{Mutex, RwLock, TryLockError};

use crate::{MallocSizeOf, Ops};

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Mutex<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match ops.wait_for_lock(|| unpoisoned(self.try_lock())) {
            Some(value) => ops.measure_guarded(value),
            None => ops.busy(),
        }
    }
}

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for RwLock<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match ops.wait_for_lock(|| unpoisoned(self.try_read())) {
            Some(value) => ops.measure_guarded(value),
            None => ops.busy(),
        }
    }
}

/// Returns the guard, also of a poisoned lock; `None` if another thread holds it.
fn unpoisoned<G>(result: Result<G, TryLockError<G>>) -> Option<G> {
    match result {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

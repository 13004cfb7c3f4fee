//! Locks, which are tried, never waited for. *Exact*, or *busy* while somebody else holds them.
//!
//! On Linux and Windows a lock owns nothing itself; where std makes locks of pthreads', their blocks cannot be seen, and this is
//! a *lower bound*. What a panic left behind in a poisoned lock is owned all the same.

use std::sync::{Mutex, RwLock, TryLockError};

use crate::{MallocSizeOf, Ops};

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Mutex<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self.try_lock() {
            Ok(value) => ops.measure_guarded(value),
            Err(TryLockError::Poisoned(error)) => ops.measure_guarded(error.into_inner()),
            Err(TryLockError::WouldBlock) => ops.busy(),
        }
    }
}

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for RwLock<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self.try_read() {
            Ok(value) => ops.measure_guarded(value),
            Err(TryLockError::Poisoned(error)) => ops.measure_guarded(error.into_inner()),
            Err(TryLockError::WouldBlock) => ops.busy(),
        }
    }
}

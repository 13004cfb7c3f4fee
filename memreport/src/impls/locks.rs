//! Measures locks, without waiting for them. *Exact*, or *busy* while another thread holds them.
//!
//! On Linux and Windows a lock itself owns nothing. Where std's locks use pthreads, their blocks
//! are not counted: a *lower bound*. The value in a poisoned lock is measured as usual.

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

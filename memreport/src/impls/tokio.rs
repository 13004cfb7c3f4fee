//! Measures locks and cells of `tokio::sync`, without waiting for them. *Exact*, or *busy* while
//! another task holds them.
//!
//! Waiting tasks belong to the runtime and are not counted.
#![expect(unsafe_code, reason = "vouches for guards that keep what they lend")]

use tokio::sync::{Mutex, MutexGuard, Notify, OnceCell, RwLock, RwLockReadGuard, Semaphore};

use crate::measure::guard::Guard;
use crate::{MallocSizeOf, Ops};

owns_nothing!(Notify, Semaphore);

// SAFETY: the value is inside the mutex, which stays locked until the guard is dropped.
unsafe impl<T: ?Sized> Guard for MutexGuard<'_, T> {}
// SAFETY: the value is inside the lock, which stays locked until the guard is dropped.
unsafe impl<T: ?Sized> Guard for RwLockReadGuard<'_, T> {}

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for Mutex<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self.try_lock() {
            Ok(value) => ops.measure_guarded(value),
            Err(_) => ops.busy(),
        }
    }
}

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for RwLock<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self.try_read() {
            Ok(value) => ops.measure_guarded(value),
            Err(_) => ops.busy(),
        }
    }
}

impl<T: MallocSizeOf> MallocSizeOf for OnceCell<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.get().into_iter().for_each(|value| value.add_size_of_excluding_this(ops));
    }
}

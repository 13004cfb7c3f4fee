//! Measures locks and cells of `tokio::sync`. *Exact*, or *busy* if another task holds them for
//! longer than the collection waits.
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
        match ops.wait_for_lock(|| self.try_lock().ok()) {
            Some(value) => ops.measure_guarded(value),
            None => ops.busy(),
        }
    }
}

impl<T: ?Sized + MallocSizeOf> MallocSizeOf for RwLock<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match ops.wait_for_lock(|| self.try_read().ok()) {
            Some(value) => ops.measure_guarded(value),
            None => ops.busy(),
        }
    }
}

impl<T: MallocSizeOf> MallocSizeOf for OnceCell<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.get().into_iter().for_each(|value| value.add_size_of_excluding_this(ops));
    }
}

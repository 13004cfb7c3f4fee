//! Measures locks made with `lock_api`, such as `parking_lot`'s. *Exact*, or *busy* if another
//! thread holds them for longer than the collection waits.
#![expect(unsafe_code, reason = "vouches for guards that keep what they lend")]

use lock_api::{Mutex, MutexGuard, RawMutex, RawRwLock, RwLock, RwLockReadGuard};

use crate::measure::guard::Guard;
use crate::{MallocSizeOf, Ops};

// SAFETY: the value is inside the mutex, which stays locked until the guard is dropped.
unsafe impl<R: RawMutex, T: ?Sized> Guard for MutexGuard<'_, R, T> {}
// SAFETY: the value is inside the lock, which stays locked until the guard is dropped.
unsafe impl<R: RawRwLock, T: ?Sized> Guard for RwLockReadGuard<'_, R, T> {}

impl<R: RawMutex, T: ?Sized + MallocSizeOf> MallocSizeOf for Mutex<R, T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match ops.wait_for_lock(|| self.try_lock()) {
            Some(value) => ops.measure_guarded(value),
            None => ops.busy(),
        }
    }
}

impl<R: RawRwLock, T: ?Sized + MallocSizeOf> MallocSizeOf for RwLock<R, T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match ops.wait_for_lock(|| self.try_read()) {
            Some(value) => ops.measure_guarded(value),
            None => ops.busy(),
        }
    }
}

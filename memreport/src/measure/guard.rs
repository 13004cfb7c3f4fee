//! Measuring what a guard lends, as that of a lock: at once, or if the stack is deep, later, with the guard kept until then.
#![expect(
    unsafe_code,
    reason = "what a guard lends is put off past the borrow that the compiler sees"
)]

use core::cell::Ref;
use core::ops::Deref;
#[cfg(feature = "std")]
use std::sync::{MutexGuard, RwLockReadGuard};

use super::ops::Ops;
use super::size_of::MallocSizeOf;

/// Lends a value for as long as it lives.
///
/// # Safety
///
/// The value is lent until the guard is dropped, and stays where it is when the guard moves.
pub(crate) unsafe trait Guard: Deref {}

// SAFETY: the value is inside the cell, which stays borrowed until the guard is dropped.
unsafe impl<T: ?Sized> Guard for Ref<'_, T> {}
#[cfg(feature = "std")]
// SAFETY: the value is inside the mutex, which stays locked until the guard is dropped.
unsafe impl<T: ?Sized> Guard for MutexGuard<'_, T> {}
#[cfg(feature = "std")]
// SAFETY: the value is inside the lock, which stays locked until the guard is dropped.
unsafe impl<T: ?Sized> Guard for RwLockReadGuard<'_, T> {}

impl<'a> Ops<'a> {
    /// Measures what the guard lends. It is held until that is done.
    pub(crate) fn locked<G: Guard<Target: MallocSizeOf> + 'a>(&self, guard: G) {
        if !self.is_deep() {
            return self.locked_now(guard);
        }
        let value: *const G::Target = &*guard;
        // SAFETY: lent until the guard is dropped, and it is kept until these `Ops` have nothing left to do. No implementation
        // can hold on to the value for longer: each is written for every `'a`, so it has no place to put an `&'a` in.
        let value: &'a G::Target = unsafe { &*value };
        self.keep(guard);
        self.add(value);
    }

    #[cfg(feature = "std")]
    fn locked_now<G: Guard<Target: MallocSizeOf>>(&self, guard: G) {
        use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

        let measure = || self.now(&*guard, G::Target::add_size_of_excluding_this);
        let outcome = catch_unwind(AssertUnwindSafe(measure));
        // Not while a panic unwinds: that would poison a mutex, though nothing inside was changed.
        drop(guard);
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
    }

    /// Locks that can be poisoned are std's.
    #[cfg(not(feature = "std"))]
    fn locked_now<G: Guard<Target: MallocSizeOf>>(&self, guard: G) {
        self.now(&*guard, G::Target::add_size_of_excluding_this);
    }
}

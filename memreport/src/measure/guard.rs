//! Measures the value behind a guard, such as a lock's: at once, or deferred if the stack is deep.
//! A deferred measurement holds the guard.
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

/// A guard that borrows a value for as long as it lives.
///
/// # Safety
///
/// The value stays borrowed until the guard is dropped, and stays in place when the guard moves.
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
    /// Measures the value behind the guard, and holds the guard until that is done.
    pub(crate) fn measure_guarded<G: Guard<Target: MallocSizeOf> + 'a>(&self, guard: G) {
        if !self.is_deep() {
            return self.measure_guarded_now(guard);
        }
        let value: *const G::Target = &*guard;
        // SAFETY: borrowed until the guard is dropped, and `hold` keeps the guard until these `Ops`
        // have no work left. No implementation can keep the value for longer: each is written for
        // every `'a`, so it has no place to store an `&'a`.
        let value: &'a G::Target = unsafe { &*value };
        self.hold(guard);
        self.add(value);
    }

    #[cfg(feature = "std")]
    fn measure_guarded_now<G: Guard<Target: MallocSizeOf>>(&self, guard: G) {
        use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

        let measure = || {
            let _held = self.holding();
            self.measure_borrowed(&*guard, G::Target::add_size_of_excluding_this);
        };
        let outcome = catch_unwind(AssertUnwindSafe(measure));
        // Not while a panic unwinds: that would poison a mutex, although nothing inside was
        // changed.
        drop(guard);
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
    }

    /// Measures the value now. Without std there are no locks that can be poisoned.
    #[cfg(not(feature = "std"))]
    fn measure_guarded_now<G: Guard<Target: MallocSizeOf>>(&self, guard: G) {
        self.measure_borrowed(&*guard, G::Target::add_size_of_excluding_this);
        drop(guard);
    }
}

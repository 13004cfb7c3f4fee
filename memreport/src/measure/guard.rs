//! Measures the value behind a guard, such as a lock's: at once, or deferred if the stack is deep.
//! A deferred measurement holds the guard.
//!
//! A guard is never dropped while a panic unwinds. That would poison a mutex, although nothing
//! inside was changed.
#![expect(
    unsafe_code,
    reason = "what a guard lends is put off past the borrow that the compiler sees"
)]

use alloc::rc::Rc;
use core::cell::Ref;
use core::ops::Deref;
#[cfg(feature = "std")]
use std::sync::{MutexGuard, RwLockReadGuard};

use super::held::hold_during;
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
        self.guards.hold((guard, self.holding()));
        // SAFETY: borrowed until the guard is dropped, and `hold` keeps the guard until these `Ops`
        // have no work left. No implementation can keep the value for longer: each is written for
        // every `'a`, so it has no place to store an `&'a`.
        self.add::<G::Target>(unsafe { &*value });
    }

    /// Measures a value that the measurement owns, such as a clone of a pointer, and drops it
    /// afterwards.
    pub(crate) fn measure_owned<V: MallocSizeOf + 'a>(&self, value: V) {
        if !self.is_deep() {
            return self.measure_borrowed(&value, V::add_size_of_excluding_this);
        }
        let owner = Rc::new(value);
        let value: *const V = &*owner;
        // No lock is held, so the time to wait for locks is not reduced.
        self.guards.hold(owner);
        // SAFETY: as in `measure_guarded`: the owner is held as a guard.
        self.add::<V>(unsafe { &*value });
    }

    fn measure_guarded_now<G: Guard<Target: MallocSizeOf>>(&self, guard: G) {
        hold_during(guard, |guard| {
            let _held = self.holding();
            self.measure_borrowed(&**guard, G::Target::add_size_of_excluding_this);
        });
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Mutex;

    use super::*;

    /// A chain of locks, the last of which has a value that panics.
    struct Link(Option<Box<Mutex<Link>>>);

    impl MallocSizeOf for Link {
        fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
            ops.add(self.0.as_ref().expect("an impl that panics"));
        }
    }

    #[test]
    fn a_panic_far_from_the_first_lock_poisons_none() {
        let mut first = Link(None);
        for _ in 0..if cfg!(miri) { 100 } else { 1000 } {
            first = Link(Some(Box::new(Mutex::new(first))));
        }
        assert!(catch_unwind(|| crate::measure(&first)).is_err());
        let mut link = first;
        while let Link(Some(next)) = link {
            link = next.into_inner().expect("it is not poisoned");
        }
    }
}

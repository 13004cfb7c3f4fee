//! Guards that a measurement holds until it is done, and drops even if it panics.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;

/// Runs `work` and then drops the guard: if `work` panics, between the panic and its continuation.
#[cfg(feature = "std")]
pub(super) fn hold_during<G, R>(guard: G, work: impl FnOnce(&G) -> R) -> R {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    let outcome = catch_unwind(AssertUnwindSafe(|| work(&guard)));
    drop(guard);
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Runs `work` and then drops the guard. Without std there are no locks that can be poisoned.
#[cfg(not(feature = "std"))]
pub(super) fn hold_during<G, R>(guard: G, work: impl FnOnce(&G) -> R) -> R {
    work(&guard)
}

/// The guards of deferred values.
#[derive(Default)]
pub(super) struct Guards<'a> {
    held: RefCell<Vec<Box<dyn Droppable + 'a>>>,
}

/// A value that is only held and dropped.
trait Droppable {}

impl<T> Droppable for T {}

impl<'a> Guards<'a> {
    /// Holds a guard until all are released.
    pub(super) fn hold(&self, guard: impl Sized + 'a) {
        self.held.borrow_mut().push(Box::new(guard));
    }

    /// Drops the guards, the last one first: it may borrow from what an earlier one owns.
    pub(super) fn release(&self) {
        // A closure, because a borrow in the loop's head would last for its body.
        let last = || self.held.borrow_mut().pop();
        while let Some(guard) = last() {
            drop(guard);
        }
    }
}

impl Drop for Guards<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

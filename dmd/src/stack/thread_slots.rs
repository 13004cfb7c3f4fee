//! `ThreadSlots`: values that threads own one after the other.
//!
//! A thread that needs a large value takes one here instead of having it in static thread-local
//! storage, which would enlarge every thread of the program.
#![expect(unsafe_code, reason = "only the owner of a slot refers to its value")]

use crate::mem::concurrent_vec::ConcurrentVec;
use crate::mem::lazy_slice::{LazySlice, Zeroed};
use crate::mem::sync::Ordering::{Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU32, const_fn};

/// Values in pages of their own, of which each belongs to one thread at a time.
pub(crate) struct ThreadSlots<T> {
    slots: ConcurrentVec<Slot<T>>,
}

/// A value that this thread has taken.
pub(crate) struct Taken<T: 'static> {
    /// The index of its slot.
    pub(crate) index: usize,
    /// The value as the former owner has left it; at first all zeros.
    pub(crate) value: &'static T,
}

struct Slot<T> {
    /// Is 1 if a thread owns the value.
    is_owned: AtomicU32,
    value: LazySlice<Owned<T>>,
}

/// A value that only the owner of its slot refers to.
struct Owned<T>(T);

// SAFETY: `take` refers to the value only for the owner, and the value may change threads.
unsafe impl<T: Send> Sync for Owned<T> {}

// SAFETY: a struct with this value alone.
unsafe impl<T: Zeroed> Zeroed for Owned<T> {
    #[cfg(loom)]
    fn zero() -> Self {
        Owned(T::zero())
    }
}

// SAFETY: zeros are a slot that nobody owns, with a value that is not mapped yet.
unsafe impl<T: 'static> Zeroed for Slot<T> {
    #[cfg(loom)]
    fn zero() -> Self {
        Slot { is_owned: AtomicU32::new(0), value: LazySlice::new() }
    }
}

impl<T: Zeroed + Send> ThreadSlots<T> {
    const_fn! {
        pub(crate) fn new() -> Self {
            ThreadSlots { slots: ConcurrentVec::new() }
        }
    }

    /// Takes the first free value. Returns `None` when memory is short.
    pub(crate) fn take(&self) -> Option<Taken<T>> {
        for index in 0.. {
            let slot = self.slots.get_or_alloc(index)?;
            let is_free = slot.is_owned.load(Relaxed) == 0;
            // Acquire, with the Release of `release`: what the former owner wrote is visible.
            if is_free && slot.is_owned.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                let Some([Owned(value)]) = slot.value.get_or_alloc(1) else {
                    slot.is_owned.store(0, Release);
                    return None;
                };
                return Some(Taken { index, value });
            }
        }
        None
    }

    /// Releases a value for other threads.
    ///
    /// # Safety
    ///
    /// The caller has taken the slot with this index, and no longer uses the reference to its
    /// value.
    pub(crate) unsafe fn release(&self, index: usize) {
        if let Some(slot) = self.slots.get(index) {
            // Release, with the Acquire of `take`.
            slot.is_owned.store(0, Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Number(Cell<u64>);

    // SAFETY: zero is a valid integer.
    unsafe impl Zeroed for Number {}

    #[test]
    fn a_value_has_one_owner_at_a_time_and_keeps_its_content() {
        let slots = ThreadSlots::<Number>::new();
        let take = || slots.take().expect("there is memory");
        let (first, second) = (take(), take());
        assert_eq!((first.index, second.index), (0, 1));
        first.value.0.set(7);
        assert_eq!(second.value.0.get(), 0);
        // SAFETY: taken above, and its value is not used below.
        unsafe { slots.release(first.index) };
        assert_eq!((take().value.0.get(), take().index), (7, 2));
    }
}

//! The last stacks of threads. They are too large for static thread-local storage, which every
//! thread of the program would pay for: a thread takes one for its first walk, and its end releases
//! it for other threads.
#![expect(unsafe_code, reason = "the end of a thread releases its last stack")]

use std::cell::Cell;
use std::ffi::c_void;
use std::num::NonZeroUsize;

use super::thread_slots::ThreadSlots;
use super::walk::last::LastStack;
use memreport::__private::ThreadEnd;

static LAST_STACKS: ThreadSlots<LastStack> = ThreadSlots::new();

static THREAD_END: ThreadEnd = ThreadEnd::new(release);

memreport::__hook_local! {
    static OWN: Cell<Option<&'static LastStack>> = Cell::new(None), "dmd_hook_last_stack"
}

memreport::__hook_local! {
    static IS_RELEASED: Cell<bool> = Cell::new(false), "dmd_hook_last_stack_is_released"
}

/// Returns the last stack of this thread, if it has one.
#[inline(always)]
pub(crate) fn known() -> Option<&'static LastStack> {
    OWN.try_with(Cell::get).ok().flatten()
}

/// Returns the last stack of this thread, at first an empty one. Returns `None` when memory is
/// short, and once the thread has released it.
#[inline(always)]
pub(super) fn known_or_taken() -> Option<&'static LastStack> {
    known().or_else(take)
}

#[cold]
fn take() -> Option<&'static LastStack> {
    // The C library frees a thread's own data after its last destructor: nothing would release what
    // the thread takes then.
    if IS_RELEASED.try_with(Cell::get).unwrap_or(true) {
        return None;
    }
    let taken = LAST_STACKS.take()?;
    if !THREAD_END.set(NonZeroUsize::MIN.saturating_add(taken.index)) {
        // SAFETY: taken above, and nothing refers to it.
        unsafe { LAST_STACKS.release(taken.index) };
        return None;
    }
    taken.value.reset();
    OWN.try_with(|own| own.set(Some(taken.value))).ok()?;
    Some(taken.value)
}

/// Releases the last stack of this thread. `number` is the index of its slot plus one.
extern "C" fn release(number: *mut c_void) {
    let _ = OWN.try_with(|own| own.set(None));
    let _ = IS_RELEASED.try_with(|is_released| is_released.set(true));
    // SAFETY: this thread took the slot, its only reference is cleared, and no hook is running:
    // hooks end no threads.
    unsafe { LAST_STACKS.release(number.addr().wrapping_sub(1)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_thread_that_has_released_its_last_stack_takes_no_other() {
        let run = || {
            let taken = LAST_STACKS.take().expect("there is memory");
            assert!(known_or_taken().is_some());
            release(std::ptr::without_provenance_mut(taken.index + 1));
            assert!(known_or_taken().is_none());
        };
        std::thread::spawn(run).join().expect("it ends");
    }

    #[test]
    fn threads_reuse_the_last_stacks_of_ended_threads() {
        let address = || {
            let last = known_or_taken().expect("there is memory");
            assert_eq!((last.length.get(), last.reusable.get(), last.hashed.get()), (0, 0, 0));
            last.length.set(3);
            std::ptr::from_ref(last).addr()
        };
        let threads = (0..200).map(|_| std::thread::spawn(address).join().expect("it ends"));
        // Other tests run at the same time, on a few threads.
        let addresses: BTreeSet<usize> = threads.collect();
        assert!(addresses.len() < 100, "{}", addresses.len());
    }
}

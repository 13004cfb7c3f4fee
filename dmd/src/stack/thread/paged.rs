//! The state of each thread in pages of its own, in a preloaded library.
//!
//! The C library puts thread-locals of such a library on the stack of every thread, whose size the
//! program has chosen. A thread has a pointer there, and its pages are another's when it ends.
#![expect(unsafe_code, reason = "refers to its own pages")]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use super::Thread;
use crate::mem::sys;

memreport::__hook_local! {
    /// The state of this thread: null before its first use, [`ENDED`] after its end.
    static STATE: Cell<*const Thread> = Cell::new(ptr::null()), "dmd_hook_thread"
}

const ENDED: *const Thread = ptr::without_provenance(1);

/// States of ended threads.
static FREE: [AtomicPtr<Thread>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];

/// Returns the state of this thread, or `None` if the thread ends or memory is short.
#[inline(always)]
pub(super) fn current<'a>() -> Option<&'a Thread> {
    let state = STATE.try_with(Cell::get).ok()?;
    if state.addr() <= ENDED.addr() {
        return begin(state);
    }
    // SAFETY: pages of this thread, which are another's only after it has ended.
    Some(unsafe { &*state })
}

#[cold]
#[inline(never)]
fn begin<'a>(state: *const Thread) -> Option<&'a Thread> {
    let set = |state| STATE.try_with(|own| own.set(state));
    if state == ENDED {
        return None;
    }
    // Storing the value for the end of the thread may allocate, and come here.
    set(ENDED).ok()?;
    let is_free = |place: &AtomicPtr<Thread>| {
        // AcqRel, with that of `end`: the former thread has written the state.
        let found = if place.load(Relaxed).is_null() {
            ptr::null_mut()
        } else {
            place.swap(ptr::null_mut(), AcqRel)
        };
        (!found.is_null()).then_some(found)
    };
    let own = FREE.iter().find_map(is_free);
    let own = own.or_else(|| sys::map(BYTES).map(|pages| pages.as_ptr().cast::<Thread>()))?;
    // SAFETY: pages of this size, which no other thread uses.
    unsafe { own.write(Thread::new()) };
    // Without a key, the pages are kept for ever.
    if let Some(key) = key() {
        // SAFETY: a live key.
        unsafe { libc::pthread_setspecific(key, own.cast()) };
    }
    set(own).ok()?;
    // SAFETY: written above.
    Some(unsafe { &*own })
}

/// The size of a state in whole pages.
const BYTES: usize = size_of::<Thread>().next_multiple_of(sys::PAGE);

/// Takes the state of a thread that ends. What it allocates from now on has no site.
extern "C" fn end(state: *mut c_void) {
    let _ = STATE.try_with(|own| own.set(ENDED));
    let state = state.cast::<Thread>();
    let null = ptr::null_mut();
    let is_kept =
        FREE.iter().any(|place| place.compare_exchange(null, state, AcqRel, Relaxed).is_ok());
    if let Some(pages) = ptr::NonNull::new(state.cast()).filter(|_| !is_kept) {
        // SAFETY: mapped by `begin`, with this size, and not used any more.
        unsafe { sys::unmap(pages, BYTES) };
    }
}

/// The key of the C library for the end of threads plus one, or 0 before it is created.
static KEY: AtomicU64 = AtomicU64::new(0);

fn key() -> Option<libc::pthread_key_t> {
    let known = KEY.load(Acquire);
    if known != 0 {
        return libc::pthread_key_t::try_from(known - 1).ok();
    }
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: a plain call; `key` is written before it returns 0.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, u64::from(key) + 1, AcqRel, Acquire) {
        Ok(_) => Some(key),
        Err(first) => {
            // SAFETY: made above, and no thread has used it.
            unsafe { libc::pthread_key_delete(key) };
            libc::pthread_key_t::try_from(first - 1).ok()
        }
    }
}

//! `ThreadEnd`: a function for the end of threads.
//!
//! It needs no destructor of Rust's thread-local values, whose registration may allocate, and it
//! runs after them.
#![cfg_attr(all(unix, not(miri)), expect(unsafe_code, reason = "calls the C library"))]

use core::ffi::c_void;
use core::num::NonZeroUsize;
use core::sync::atomic::AtomicU64;

/// A function that the C library calls at the end of each thread that has set a number for it.
#[derive(Debug)]
pub struct ThreadEnd {
    /// The pthread key plus one, or 0 before it is created.
    #[cfg_attr(not(all(unix, not(miri))), expect(dead_code, reason = "there are no keys"))]
    key: AtomicU64,
    #[cfg_attr(not(all(unix, not(miri))), expect(dead_code, reason = "there are no keys"))]
    at_end: extern "C" fn(*mut c_void),
}

impl ThreadEnd {
    /// Makes one. The function receives the thread's number as the address of its argument.
    #[must_use]
    pub const fn new(at_end: extern "C" fn(*mut c_void)) -> Self {
        ThreadEnd { key: AtomicU64::new(0), at_end }
    }

    /// Sets the number that the function receives at the end of this thread. Returns `false` if the
    /// C library has no room for another function or number, and on other systems than Unix.
    #[cfg(all(unix, not(miri)))]
    pub fn set(&self, number: NonZeroUsize) -> bool {
        let Some(key) = self.key() else { return false };
        let value = core::ptr::without_provenance(number.get());
        // SAFETY: a live key; the value is only ever a number.
        unsafe { libc::pthread_setspecific(key, value) == 0 }
    }

    /// Returns `false`: there is no such function here.
    #[cfg(not(all(unix, not(miri))))]
    pub fn set(&self, _number: NonZeroUsize) -> bool {
        false
    }

    #[cfg(all(unix, not(miri)))]
    #[allow(clippy::useless_conversion, reason = "a number of 32 bits, on macOS of 64")]
    fn key(&self) -> Option<libc::pthread_key_t> {
        use core::sync::atomic::Ordering::{AcqRel, Acquire};

        let known = self.key.load(Acquire);
        if known != 0 {
            return libc::pthread_key_t::try_from(known - 1).ok();
        }
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: a plain call; `key` is written before it returns 0.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(self.at_end)) } != 0 {
            return None;
        }
        match self.key.compare_exchange(0, u64::from(key) + 1, AcqRel, Acquire) {
            Ok(_) => Some(key),
            Err(first) => {
                // SAFETY: made above, and no thread has used it.
                unsafe { libc::pthread_key_delete(key) };
                libc::pthread_key_t::try_from(first - 1).ok()
            }
        }
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicUsize;
    use core::sync::atomic::Ordering::Relaxed;

    #[test]
    fn the_function_runs_once_for_each_thread_that_set_a_number() {
        static SUM: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn add(number: *mut c_void) {
            SUM.fetch_add(number.addr(), Relaxed);
        }
        static END: ThreadEnd = ThreadEnd::new(add);
        let threads = [None, NonZeroUsize::new(1), NonZeroUsize::new(20), NonZeroUsize::new(300)];
        for number in threads {
            let thread = std::thread::spawn(move || number.is_none_or(|number| END.set(number)));
            assert!(thread.join().expect("the thread ends"));
        }
        assert_eq!(SUM.load(Relaxed), 321);
    }
}

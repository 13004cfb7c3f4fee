//! Keeps signals that would end this process from it, for a while.
#![expect(unsafe_code, reason = "changes the signals that this thread blocks")]

use std::mem::MaybeUninit;
use std::ptr;

/// The signals with which people and service managers end a program.
const SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// This thread with such signals blocked: another process is in a state in which it must not be
/// left. Dropping it lets them arrive.
#[derive(Debug)]
pub(crate) struct HeldSignals {
    before: libc::sigset_t,
}

impl HeldSignals {
    /// Blocks the signals.
    pub(crate) fn hold() -> Self {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the set is valid for the write.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for signal in SIGNALS {
            // SAFETY: the set is initialized.
            unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
        }
        // SAFETY: the one set is initialized, and the other is valid for the write.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: written, and all zeros would be a valid set, too.
        HeldSignals { before: unsafe { before.assume_init() } }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: the kernel gave this set; the pointer for the former one may be null.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_waits_until_it_is_let_through() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};

        let arrived = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(libc::SIGQUIT, Arc::clone(&arrived)).expect("a signal");
        let held = HeldSignals::hold();
        signal_hook::low_level::raise(libc::SIGQUIT).expect("a signal");
        assert!(!arrived.load(Ordering::SeqCst));
        drop(held);
        assert!(arrived.load(Ordering::SeqCst));
    }
}

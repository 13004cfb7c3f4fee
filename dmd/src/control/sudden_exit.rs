//! Runs the tracker's exit handlers when a program ends by `_exit`, which runs none.
//!
//! `_exit` is async-signal-safe: its caller may hold the lock of `malloc`, or share its memory with
//! the parent (`vfork`). So it only wakes a thread that does the work, and waits for it.

use std::process;
use std::sync::Once;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use memreport::__private::as_own;

use crate::mem::signals;
use crate::mem::sys::Futex;
use crate::stack::thread::mark_own;

/// The process whose thread waits, or 0: a forked child has none.
static WAITING_IN: AtomicU32 = AtomicU32::new(0);

/// Changes when a thread calls `_exit`.
static REQUESTED: Futex = Futex::new();

/// Changes when the handlers have run.
static DONE: Futex = Futex::new();

/// The longest time that an exit waits. The caller may have interrupted `malloc`, whose lock the
/// handlers then wait for.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Starts the thread, in a preloaded library, whose `_exit` calls [`before_sudden_exit`].
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    if cfg!(memreport_preload) {
        STARTED.call_once(|| {
            if signals::spawn(wait).is_ok() {
                WAITING_IN.store(process::id(), SeqCst);
            }
        });
    }
}

extern "C" fn wait() {
    mark_own();
    while REQUESTED.changes() == 0 {
        REQUESTED.wait(0, Duration::from_secs(3600));
    }
    as_own(signals::run_exit_handlers);
    DONE.change();
    DONE.wake();
}

/// Runs the exit handlers of the tracker, before the process ends without any. Signal handlers and
/// children of `vfork` may call it.
pub fn before_sudden_exit() {
    if WAITING_IN.load(SeqCst) != process::id() {
        return;
    }
    REQUESTED.change();
    REQUESTED.wake();
    let began = Instant::now();
    while DONE.changes() == 0 {
        let left = TIMEOUT.saturating_sub(began.elapsed());
        if left.is_zero() {
            return;
        }
        DONE.wait(0, left);
    }
}

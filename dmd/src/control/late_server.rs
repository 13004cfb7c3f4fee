//! Serves a program that the tracker is preloaded into, once it has run for a while.
//!
//! Shells start hundreds of programs that run for milliseconds. These have no socket, which would
//! stay in its folder if they end without exit handlers.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, TryLockError};
use std::thread;
use std::time::Duration;

use memreport::__private::as_own;
use memreport::serve::{Server, Serving};

use crate::mem::signals;
use crate::stack::thread::mark_own;

/// The time that a program runs before it is served.
const DELAY: Duration = Duration::from_millis(100);

/// True once the process exits. The lock orders it.
static IS_EXITING: AtomicBool = AtomicBool::new(false);

static SERVING: Mutex<Option<Serving>> = Mutex::new(None);

/// Starts the server after the delay, and removes its socket at exit.
pub(crate) fn start() {
    if signals::spawn(serve).is_ok() {
        signals::at_exit(stop);
    }
}

extern "C" fn serve() {
    mark_own();
    as_own(|| {
        thread::sleep(DELAY);
        // Locked meanwhile, so that an exit waits for the socket that it removes.
        if let Ok(mut place) = SERVING.lock()
            && !IS_EXITING.load(Relaxed)
        {
            // A program without a place for sockets has no live view.
            *place = Server::default().start().ok();
        }
    });
}

/// The milliseconds that an exit waits: in a forked child, the thread with the lock may be gone.
const TIMEOUT: u32 = 50;

extern "C" fn stop() {
    IS_EXITING.store(true, Relaxed);
    for _ in 0..TIMEOUT {
        match SERVING.try_lock() {
            Ok(mut place) => {
                if let Some(serving) = place.take() {
                    serving.stop();
                }
                return;
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            Err(TryLockError::Poisoned(_)) => return,
        }
    }
}

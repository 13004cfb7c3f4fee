//! Serves a program that the tracker is preloaded into, once it has run for a while, and its forked
//! children.
//!
//! Shells start hundreds of programs that run for milliseconds. These have no socket, which would
//! stay in its folder if they end without exit handlers.

use std::ptr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::thread;
use std::time::Duration;

use memreport::__private::as_own;
use memreport::serve::{Server, Serving};

use crate::mem::{signals, sys};
use crate::stack::thread::mark_own;

/// The time that a program runs before it is served.
const DELAY: Duration = Duration::from_millis(100);

// SeqCst for all three: an exit sets the first and reads the second, the thread does the reverse,
// and one of them must see the other.

/// True once the process exits.
static IS_EXITING: AtomicBool = AtomicBool::new(false);

/// True while the server starts.
static IS_STARTING: AtomicBool = AtomicBool::new(false);

/// The server, in a box; null if there is none.
static SERVING: AtomicPtr<Serving> = AtomicPtr::new(ptr::null_mut());

/// Starts the server after the delay, also in forked children, and removes its socket at exit.
pub(crate) fn start() {
    signals::at_fork(in_child);
    if signals::spawn(serve).is_ok() {
        signals::at_exit(stop);
    }
}

/// Starts a server in a forked child, in which the parent's thread is missing.
///
/// glibc calls this when its own locks are usable again, and after the handlers of an allocator
/// below, which was there before. So a thread can be started. It waits for locks that the parent's
/// threads may have held, and the program's threads do not wait for it.
extern "C" fn in_child() {
    sys::keeping_errno(|| {
        IS_STARTING.store(false, SeqCst);
        // The parent's, whose descriptors it closes. Its socket stays.
        drop(take());
        if !IS_EXITING.load(SeqCst) {
            // A child that may have no thread has no live view.
            let _ = as_own(|| signals::spawn(serve));
        }
    });
}

extern "C" fn serve() {
    mark_own();
    as_own(|| {
        thread::sleep(DELAY);
        IS_STARTING.store(true, SeqCst);
        if !IS_EXITING.load(SeqCst) {
            // A program without a place for sockets has no live view.
            if let Ok(serving) = Server::default().start() {
                SERVING.store(Box::into_raw(Box::new(serving)), SeqCst);
            }
        }
        IS_STARTING.store(false, SeqCst);
    });
}

/// The milliseconds that an exit waits for a server that starts, to remove its socket.
const TIMEOUT: u32 = 50;

extern "C" fn stop() {
    IS_EXITING.store(true, SeqCst);
    for _ in 0..TIMEOUT {
        if !IS_STARTING.load(SeqCst) {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    if let Some(serving) = take() {
        serving.stop();
    }
}

fn take() -> Option<Serving> {
    let serving = SERVING.swap(ptr::null_mut(), SeqCst);
    if serving.is_null() {
        return None;
    }
    #[expect(unsafe_code, reason = "takes a box back")]
    // SAFETY: the pointer is of a box, and the swap took it from everybody else.
    let serving = unsafe { Box::from_raw(serving) };
    Some(*serving)
}

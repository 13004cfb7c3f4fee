//! Serves a program that the tracker is preloaded into, once it has run for a while.
//!
//! Shells start hundreds of programs that run for milliseconds. These have no socket, which would
//! stay in its folder if they end without exit handlers.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use memreport::__private::as_own;
use memreport::serve::{Server, Serving};

use crate::mem::signals;
use crate::stack::thread::mark_own;

/// The time that a program runs before it is served.
const DELAY: Duration = Duration::from_millis(100);

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
        // A program without a place for sockets has no live view.
        if let Ok(serving) = Server::default().start()
            && let Ok(mut place) = SERVING.lock()
        {
            *place = Some(serving);
        }
    });
}

extern "C" fn stop() {
    // In a forked child, the thread that holds the lock may be gone.
    if let Ok(mut place) = SERVING.try_lock()
        && let Some(serving) = place.take()
    {
        serving.stop();
    }
}

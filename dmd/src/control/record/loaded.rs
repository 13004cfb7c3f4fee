//! The modules of a recording, listed by a thread of their own.
//!
//! Listing takes the linker's lock. A thread that holds it, such as one that prints a backtrace,
//! may wait for the recorder, which therefore must not wait for the lock.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{Builder, JoinHandle};
use std::{io, mem};

use memreport::__private::as_own;

use crate::mem::signals::block_all;
use crate::mem::sys;
use crate::mem::sys::Module;
use crate::stack::thread::mark_own;

/// The modules that are known, and the thread that lists them again.
pub(super) struct Loaded {
    /// The number of known modules, and the addresses of their segments.
    count: usize,
    segments: Vec<(usize, usize)>,
    /// True if a frame lies in no known module.
    is_stale: bool,
    request: Option<SyncSender<()>>,
    found: Receiver<Vec<Module>>,
    thread: Option<JoinHandle<()>>,
}

impl Loaded {
    pub(super) fn new() -> io::Result<Self> {
        let (request, requests) = mpsc::sync_channel::<()>(1);
        let (send, found) = mpsc::sync_channel(1);
        let thread = Builder::new().name("dmd-modules".into()).spawn(move || {
            block_all();
            mark_own();
            as_own(|| while requests.recv().is_ok() && send.send(sys::modules()).is_ok() {});
        })?;
        let (request, thread) = (Some(request), Some(thread));
        Ok(Loaded { count: 0, segments: Vec::new(), is_stale: false, request, found, thread })
    }

    /// Notes the frames of a stack.
    pub(super) fn note(&mut self, frames: &[usize]) {
        let is_known = |frame: &usize| {
            let after = self.segments.partition_point(|(low, _)| low <= frame);
            let below = after.checked_sub(1).and_then(|place| self.segments.get(place));
            below.is_some_and(|(_, high)| frame < high)
        };
        self.is_stale |= !frames.iter().all(is_known);
    }

    /// Has the thread list the modules, if a frame lies in none.
    pub(super) fn request_if_stale(&mut self) {
        if mem::take(&mut self.is_stale)
            && let Some(request) = &self.request
        {
            // A request that waits already is as good.
            let _ = request.try_send(());
        }
    }

    /// Returns all modules if the thread has listed them, and some are new.
    pub(super) fn take_new(&mut self) -> Option<Vec<Module>> {
        let modules = self.found.try_recv().ok()?;
        self.changed(modules)
    }

    /// Returns the modules of this moment. It waits for the thread, so that all it allocates for
    /// itself is there before the recording begins.
    pub(super) fn first(&mut self) -> Option<Vec<Module>> {
        self.request.as_ref()?.send(()).ok()?;
        let modules = self.found.recv().ok()?;
        self.changed(modules)
    }

    /// Lists the modules on this thread, which no hook waits for. Returns them if some are new.
    pub(super) fn list(&mut self) -> Option<Vec<Module>> {
        self.changed(sys::modules())
    }

    fn changed(&mut self, modules: Vec<Module>) -> Option<Vec<Module>> {
        if modules.len() == self.count {
            return None;
        }
        self.count = modules.len();
        self.segments = modules.iter().flat_map(|module| module.segments.clone()).collect();
        self.segments.sort_unstable();
        Some(modules)
    }

    /// Ends the thread.
    pub(super) fn end(mut self) {
        self.request = None;
        // A list that nobody takes would hold it.
        while self.found.try_recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_outside_all_modules_lists_them_again() {
        let mut loaded = Loaded::new().unwrap();
        let modules = loaded.first().unwrap();
        assert!(loaded.list().is_none(), "nothing is new");
        let (low, high) = modules[0].segments[0];
        loaded.note(&[low, high - 1]);
        assert!(!loaded.is_stale);
        loaded.note(&[low, 16]);
        assert!(loaded.is_stale);
        loaded.request_if_stale();
        assert!(!loaded.is_stale);
        // As if another one had been loaded since.
        loaded.count -= 1;
        let found = loaded.found.recv().unwrap();
        assert!(loaded.changed(found).is_some());
        loaded.end();
    }
}

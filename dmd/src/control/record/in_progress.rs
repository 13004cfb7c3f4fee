//! The recordings in progress. The newest one decides how blocks are tracked. After the last one,
//! tracking continues as it was before the first.

use std::sync::{Mutex, MutexGuard, PoisonError};

use memreport::__private::as_own;

use crate::hook::start::{StartError, start, stop};
use crate::sample::options::Options;
use crate::sample::plan;

static ALL: Mutex<InProgress> =
    Mutex::new(InProgress { pid: 0, next: 0, before: None, recordings: Vec::new() });

struct InProgress {
    /// The process of the recordings. A forked child has a copy of the list, but no recordings.
    pid: u32,
    next: u64,
    /// The options of tracking before the first of them; `None` if it was off.
    before: Option<Options>,
    /// The oldest first.
    recordings: Vec<Tracked>,
}

struct Tracked {
    number: u64,
    options: Options,
}

/// The place of a recording among those in progress, until [`end`](Self::end).
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
}

impl Place {
    /// Starts tracking as a recording needs it.
    pub(super) fn begin(options: Options) -> Result<Self, StartError> {
        let mut all = all();
        let pid = std::process::id();
        if all.pid != pid {
            all.pid = pid;
            all.recordings.clear();
        }
        if all.recordings.is_empty() {
            all.before = plan::options();
        }
        as_own(|| start(options))?;
        let number = all.next;
        all.next += 1;
        as_own(|| all.recordings.push(Tracked { number, options }));
        Ok(Place { number })
    }

    /// Continues tracking as the other recordings need it, or as it was before the first one.
    pub(super) fn end(&self) {
        let mut all = all();
        all.recordings.retain(|one| one.number != self.number);
        let options = all.recordings.last().map_or(all.before, |newest| Some(newest.options));
        // Its sampling rate has a number already, so that it starts again without an error.
        if options.is_none_or(|options| start(options).is_err()) {
            stop();
        }
    }
}

fn all() -> MutexGuard<'static, InProgress> {
    // No code panics while it holds the lock, so a poisoned list is intact.
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

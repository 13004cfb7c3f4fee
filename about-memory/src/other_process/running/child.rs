//! A child of a stopped process with its memory as it was, to be read while the process goes on.
//!
//! One stopped thread calls `clone`, with which the kernel shares all pages until one side writes
//! to them. The child never runs an instruction; if this process is killed, it ends. It shares the
//! open files, so that none stays open because of it; it sends no signal at its end, and `wait`
//! does not find it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::borrowed::{Borrowed, Functions};
use super::state::threads;
use super::trace::{Options, Traced, kill};

/// `wait4(2)` of x86-64.
const WAIT: u64 = 61;

/// The time that a thread has to stop, and the child to end.
const STOP_TIME: Duration = Duration::from_secs(2);

/// The tries to find a thread that can be borrowed for the end of the child.
const TRIES: usize = 100;

/// The pause between two of these.
const PAUSE: Duration = Duration::from_millis(5);

/// A stopped child with the memory of its parent. Dropping it ends it, and removes what the kernel
/// keeps of an ended child for its parent.
#[derive(Debug)]
pub(crate) struct Child {
    traced: Traced,
    pid: u32,
    parent: u32,
    /// Its number as its parent sees it, which may be in a container.
    number: u64,
    functions: Functions,
}

impl Child {
    /// Has a stopped thread of the process make a child.
    ///
    /// # Errors
    ///
    /// The thread cannot be borrowed, or the kernel refuses: too many processes, or too little
    /// memory.
    pub(super) fn of(parent: u32, thread: &mut Traced, functions: &Functions) -> io::Result<Self> {
        // No signal at its end: the lowest byte is 0.
        let flags = u64::try_from(libc::CLONE_FILES | libc::CLONE_FS).unwrap_or(0);
        // A child that runs after all calls `exit(0)`.
        let arguments = [Some(functions.exit), None, Some(flags), Some(0)];
        let borrowed = Borrowed::begin(thread, parent, functions.clone, arguments, functions)?;
        let made = borrowed.call()?;
        let tid = made.child.ok_or(io::ErrorKind::NotFound)?;
        let pid = u32::try_from(tid).map_err(io::Error::other)?;
        let (traced, number) = (Traced::adopt(tid), made.result);
        let mut child = Child { traced, pid, parent, number, functions: *functions };
        // The kernel has stopped it before its first instruction.
        child.traced.wait(Instant::now() + STOP_TIME)?.ok_or(io::ErrorKind::TimedOut)?;
        child.traced.set_options(Options::DIE_WITH_TRACER)?;
        // Where memory runs out, it goes first, and not the program.
        let _ = OpenOptions::new()
            .write(true)
            .open(format!("/proc/{pid}/oom_score_adj"))
            .and_then(|mut file| file.write_all(b"1000"));
        Ok(child)
    }

    /// Returns the number of the process with the copied memory.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Has a thread of the parent take the end of the child. Returns `false` if none can now.
    fn is_taken(&self) -> bool {
        let Ok(threads) = threads(self.parent) else { return true };
        threads.into_iter().any(|tid| {
            let Ok(mut thread) = Traced::seize(tid) else { return false };
            if !matches!(thread.interrupt(Instant::now() + STOP_TIME), Ok(Some(_))) {
                return false;
            }
            // Children without a signal are waited for by this flag alone.
            let flags = u64::try_from(libc::__WALL | libc::WNOHANG).unwrap_or(0);
            let arguments = [WAIT, self.number, 0, flags].map(Some);
            let functions = &self.functions;
            let borrowed = Borrowed::begin(
                &mut thread,
                self.parent,
                functions.system_call,
                arguments,
                functions,
            );
            let Ok(borrowed) = borrowed else { return false };
            match borrowed.call() {
                Ok(returned) => returned.result == self.number,
                // Someone else has.
                Err(error) => error.raw_os_error() == Some(libc::ECHILD),
            }
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        kill(self.pid);
        let end = Instant::now() + STOP_TIME;
        // Until it has ended, it may stop once more.
        while matches!(self.traced.wait(end), Ok(Some(_))) {}
        for _ in 0..TRIES {
            if self.is_taken() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

//! A process whose threads are all stopped, for as short a time as its memory is copied.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use super::borrowed::Functions;
use super::child::Child;
use super::error::ProcessError;
use super::state::threads;
use super::trace::{Registers, Traced, read_memory};

/// The time that each thread has to stop.
const STOP_TIME: Duration = Duration::from_secs(2);

/// The most looks for threads that were started meanwhile.
const LOOKS: usize = 100;

/// A process with all threads stopped. Dropping it lets them go on; so does the kernel, if this
/// process ends.
#[derive(Debug)]
pub(crate) struct Stopped {
    pid: u32,
    threads: BTreeMap<u32, Traced>,
    since: Instant,
}

impl Stopped {
    /// Stops all threads of the process.
    ///
    /// # Errors
    ///
    /// The process has ended, may not be traced, or one of its threads does not stop.
    pub(crate) fn stop(pid: u32) -> Result<Self, ProcessError> {
        let mut stopped = Stopped { pid, threads: BTreeMap::new(), since: Instant::now() };
        for _ in 0..LOOKS {
            if !stopped.stop_new()? {
                return Ok(stopped);
            }
        }
        Err(ProcessError::NotStopped(pid))
    }

    /// Stops threads that run. Returns whether there were any.
    fn stop_new(&mut self) -> Result<bool, ProcessError> {
        let pid = self.pid;
        let mut new = Vec::new();
        for tid in threads(pid)?.into_iter().filter(|tid| !self.threads.contains_key(tid)) {
            match Traced::seize(tid) {
                // If it has ended, the wait for it tells.
                Ok(thread) => {
                    let _ = thread.request_stop();
                    new.push((tid, thread));
                }
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(ProcessError::NotAllowed(pid, error)),
            }
        }
        let is_any = !new.is_empty();
        for (tid, mut thread) in new {
            match thread.wait(Instant::now() + STOP_TIME) {
                Ok(Some(_)) => drop(self.threads.insert(tid, thread)),
                Ok(None) => return Err(ProcessError::NotStopped(pid)),
                // It has ended meanwhile.
                Err(_) => {}
            }
        }
        Ok(is_any)
    }

    /// Returns the registers of each thread, by its number.
    pub(crate) fn registers(&self) -> BTreeMap<u32, Registers> {
        let of = |(tid, thread): (&u32, &Traced)| Some((*tid, thread.registers().ok()?));
        self.threads.iter().filter_map(of).collect()
    }

    /// Makes a child that has the memory of the process as it is now; `None` if no thread can, or
    /// the kernel refuses.
    pub(crate) fn child(&mut self, functions: &Functions) -> Option<Child> {
        for thread in self.threads.values_mut() {
            match Child::of(self.pid, thread, functions) {
                Ok(child) => return Some(child),
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Lets the threads go on. Returns how long they were stopped.
    pub(crate) fn resume(self) -> Duration {
        let since = self.since;
        drop(self);
        since.elapsed()
    }
}

/// Copies memory of a stopped process. Pages that cannot be read are left out at the end; the
/// result is empty if the first cannot.
pub(crate) fn copy_memory(pid: u32, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        match read_memory(pid, address + done as u64, &mut bytes[done..]) {
            Ok(0) | Err(_) => break,
            Ok(more) => done += more,
        }
    }
    bytes.truncate(done);
    bytes
}

//! Stops a thread of another process, and reads and writes its registers: ptrace(2).
#![expect(unsafe_code, reason = "calls the kernel's interface for debuggers")]

use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};
use std::{io, ptr, thread};

/// The registers of a thread.
pub(crate) type Registers = libc::user_regs_struct;

/// The interval of looks at a thread that is to stop.
const POLL: Duration = Duration::from_micros(200);

/// `PTRACE_SETSIGMASK` and its sibling: see ptrace(2).
const GET_SIGNAL_MASK: Request = 0x420a;
const SET_SIGNAL_MASK: Request = 0x420b;

/// A thread that this process traces. Dropping it lets the thread go on.
#[derive(Debug)]
pub(crate) struct Traced {
    tid: libc::pid_t,
    is_stopped: bool,
    /// The signal that the thread has stopped for, which it gets when it goes on; or 0.
    signal: c_int,
}

/// The reason why a traced thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Before this signal is delivered.
    Signal(c_int),
    /// On request.
    Requested,
    /// With its process, by a signal of job control.
    Group,
}

impl Traced {
    /// Traces the thread without stopping it.
    ///
    /// # Errors
    ///
    /// There is no such thread, or it may not be traced.
    pub(crate) fn seize(tid: u32) -> io::Result<Self> {
        let tid = libc::pid_t::try_from(tid).map_err(io::Error::other)?;
        request(libc::PTRACE_SEIZE, tid, ptr::null_mut())?;
        Ok(Traced { tid, is_stopped: false, signal: 0 })
    }

    /// Stops the thread. Returns `None` if that takes too long, as in an uninterruptible sleep.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn interrupt(&mut self, end: Instant) -> io::Result<Option<Stop>> {
        request(libc::PTRACE_INTERRUPT, self.tid, ptr::null_mut())?;
        self.wait(end)
    }

    /// Lets the thread run on, until it stops again.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        self.is_stopped = false;
        request(libc::PTRACE_CONT, self.tid, self.take_signal())
    }

    /// Keeps the signal that the thread has stopped for from it.
    pub(crate) fn discard_signal(&mut self) {
        self.signal = 0;
    }

    /// Takes the signal that the thread has stopped for, as an argument of a request.
    fn take_signal(&mut self) -> *mut c_void {
        let signal = std::mem::take(&mut self.signal);
        ptr::without_provenance_mut(usize::try_from(signal).unwrap_or(0))
    }

    /// Waits until the thread stops. Returns `None` if it does not in time.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn wait(&mut self, end: Instant) -> io::Result<Option<Stop>> {
        loop {
            let mut status = 0;
            // SAFETY: `status` is valid for the write.
            let found =
                unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
            match found {
                0 if Instant::now() >= end => return Ok(None),
                0 => thread::sleep(POLL),
                -1 => return Err(io::Error::last_os_error()),
                _ if !libc::WIFSTOPPED(status) => return Err(io::ErrorKind::NotFound.into()),
                _ => {
                    self.is_stopped = true;
                    let stop = stop_of(status);
                    self.signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
                    return Ok(Some(stop));
                }
            }
        }
    }

    /// Reads the registers of the stopped thread.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn registers(&self) -> io::Result<Registers> {
        let mut registers = MaybeUninit::<Registers>::zeroed();
        request(libc::PTRACE_GETREGS, self.tid, registers.as_mut_ptr().cast())?;
        // SAFETY: the kernel has written them; all zeros would be valid, too.
        Ok(unsafe { registers.assume_init() })
    }

    /// Writes the registers of the stopped thread.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        request(libc::PTRACE_SETREGS, self.tid, ptr::from_ref(registers).cast_mut().cast())
    }

    /// Replaces the set of blocked signals, a bit each. Returns the former one.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn set_blocked(&self, signals: u64) -> io::Result<u64> {
        let mut before = 0_u64;
        let size = ptr::without_provenance_mut::<c_void>(size_of::<u64>());
        request_with(GET_SIGNAL_MASK, self.tid, size, (&raw mut before).cast())?;
        let mut signals = signals;
        request_with(SET_SIGNAL_MASK, self.tid, size, (&raw mut signals).cast())?;
        Ok(before)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if !self.is_stopped {
            // Only a stopped thread can be let go. The kernel does it once this process ends.
            let _ = self.interrupt(Instant::now() + Duration::from_secs(1));
        }
        let signal = self.take_signal();
        let _ = request(libc::PTRACE_DETACH, self.tid, signal);
    }
}

/// Reads memory of a process that this one may trace: `process_vm_readv(2)`, which copies at once
/// what `/proc/PID/mem` copies page by page. Returns the number of bytes, fewer if a page cannot be
/// read.
///
/// # Errors
///
/// Not even the first byte can be read.
pub(super) fn read_memory(pid: u32, address: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let from = usize::try_from(address).map_err(io::Error::other)?;
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let there = libc::iovec { iov_base: ptr::without_provenance_mut(from), iov_len: bytes.len() };
    // SAFETY: the first place is valid for the write of its bytes; the kernel checks the other.
    let read = unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Returns the reason in the status of a stop: see ptrace(2), under `PTRACE_SEIZE`.
fn stop_of(status: c_int) -> Stop {
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Requested,
        libc::PTRACE_EVENT_STOP => Stop::Group,
        _ => Stop::Signal(signal),
    }
}

/// The type of a request, which differs among C libraries.
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;
#[cfg(target_env = "musl")]
type Request = c_int;

fn request(request: Request, tid: libc::pid_t, data: *mut c_void) -> io::Result<()> {
    request_with(request, tid, ptr::null_mut(), data)
}

fn request_with(
    request: Request,
    tid: libc::pid_t,
    address: *mut c_void,
    data: *mut c_void,
) -> io::Result<()> {
    // SAFETY: `data` is null, or valid for what the request reads or writes.
    let result: c_long = unsafe { libc::ptrace(request, tid, address, data) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

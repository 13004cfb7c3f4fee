//! Stops a thread of another process, and reads and writes its registers: ptrace(2).
#![expect(unsafe_code, reason = "calls the kernel's interface for debuggers")]

use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};
use std::{io, ptr, thread};

/// The registers of a thread.
pub(crate) type Registers = libc::user_regs_struct;

/// The interval of looks at a thread that is to stop, after some looks in a row: most threads stop
/// at once.
const POLL: Duration = Duration::from_micros(100);
const QUICK_LOOKS: u32 = 50;

/// `PTRACE_SETSIGMASK` and its siblings: see ptrace(2).
const GET_SIGNAL_MASK: Request = 0x420a;
const SET_SIGNAL_MASK: Request = 0x420b;
const GET_RSEQ: Request = 0x420f;

/// A thread that this process traces. Dropping it lets the thread go on.
#[derive(Debug)]
pub(crate) struct Traced {
    tid: libc::pid_t,
    /// The reason why it has stopped, unless it runs.
    stop: Option<Stop>,
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
    /// In a system call that has made a child.
    Child,
    /// At the beginning or the end of a system call.
    Call,
}

/// The treatment of a traced thread at later events: `PTRACE_O_*` of ptrace(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options(c_int);

impl Options {
    /// Its stops at system calls differ from those at signals, and it stops where it makes a
    /// child, which is traced and stopped, too.
    pub(super) const STOP_AT_CALLS: Self =
        Options(libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE);
    /// It is killed if this process ends.
    pub(super) const DIE_WITH_TRACER: Self = Options(libc::PTRACE_O_EXITKILL);
}

/// The set of registers that ptrace(2) calls `NT_X86_XSTATE`, and more bytes than any processor
/// has of it.
const EXTENDED_STATE: usize = 0x202;
const MOST_STATE: usize = 32 * 1024;

/// A thread's registration for restartable sequences, as the kernel writes it
/// (`struct ptrace_rseq_configuration`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RestartableSequences {
    address: u64,
    size: u32,
    signature: u32,
    flags: u32,
    unused: u32,
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
        Ok(Traced { tid, stop: None, signal: 0 })
    }

    /// Stops the thread. Returns `None` if that takes too long, as in an uninterruptible sleep.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn interrupt(&mut self, end: Instant) -> io::Result<Option<Stop>> {
        self.request_stop()?;
        self.wait(end)
    }

    /// Has the thread stop soon.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn request_stop(&self) -> io::Result<()> {
        request(libc::PTRACE_INTERRUPT, self.tid, ptr::null_mut())
    }

    /// Takes over a thread that the kernel has made a traced one, once it has stopped.
    pub(super) fn adopt(tid: libc::pid_t) -> Self {
        Traced { tid, stop: None, signal: 0 }
    }

    /// Lets the thread run to the beginning or the end of a system call, unless it stops before.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(super) fn resume_to_call(&mut self) -> io::Result<()> {
        self.stop = None;
        let signal = self.take_signal();
        request(libc::PTRACE_SYSCALL, self.tid, as_argument(signal))
    }

    /// Sets what the stopped thread does at later events.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(super) fn set_options(&self, options: Options) -> io::Result<()> {
        request(libc::PTRACE_SETOPTIONS, self.tid, as_argument(options.0))
    }

    /// Returns the number of the child that the thread has made, where it stopped for that.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(super) fn new_child(&self) -> io::Result<libc::pid_t> {
        let mut child: libc::c_ulong = 0;
        request(libc::PTRACE_GETEVENTMSG, self.tid, (&raw mut child).cast())?;
        libc::pid_t::try_from(child).map_err(io::Error::other)
    }

    /// Returns the address of the word that says whether the thread is in a restartable sequence,
    /// which the kernel aborts when the thread runs other code; `None` if the thread has none, or
    /// the kernel does not tell (before Linux 5.13).
    pub(super) fn sequence_word(&self) -> Option<u64> {
        let mut found = RestartableSequences::default();
        let size = ptr::without_provenance_mut(size_of::<RestartableSequences>());
        request_with(GET_RSEQ, self.tid, size, (&raw mut found).cast()).ok()?;
        // `rseq_cs` in `struct rseq`.
        (found.address != 0).then_some(found.address + 8)
    }

    /// Lets the thread run on, until it stops again.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        self.stop = None;
        let signal = self.take_signal();
        request(libc::PTRACE_CONT, self.tid, as_argument(signal))
    }

    /// Returns the reason why the thread has stopped; `None` while it runs.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// Keeps the signal that the thread has stopped for from it.
    pub(crate) fn discard_signal(&mut self) {
        self.set_signal(0);
    }

    /// Gives the thread this signal when it goes on, or none for 0, in place of the signal
    /// for which it has stopped.
    pub(crate) fn set_signal(&mut self, signal: c_int) {
        self.signal = signal;
    }

    /// Keeps the signal that the thread has stopped for from it. Returns it, or 0.
    pub(crate) fn take_signal(&mut self) -> c_int {
        std::mem::take(&mut self.signal)
    }

    /// Waits until the thread stops. Returns `None` if it does not in time.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn wait(&mut self, end: Instant) -> io::Result<Option<Stop>> {
        let mut looks = 0;
        loop {
            let mut status = 0;
            // SAFETY: `status` is valid for the write.
            let found =
                unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
            match found {
                0 if looks < QUICK_LOOKS => {
                    looks += 1;
                    thread::yield_now();
                }
                0 if Instant::now() >= end => return Ok(None),
                0 => thread::sleep(POLL),
                -1 => return Err(io::Error::last_os_error()),
                _ if !libc::WIFSTOPPED(status) => return Err(io::ErrorKind::NotFound.into()),
                _ => {
                    let stop = stop_of(status);
                    self.stop = Some(stop);
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

    /// Returns the processor's extended state: vectors and floating-point numbers.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn floating_point(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0_u8; MOST_STATE];
        let mut place = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let kind = ptr::without_provenance_mut(EXTENDED_STATE);
        request_with(libc::PTRACE_GETREGSET, self.tid, kind, (&raw mut place).cast())?;
        bytes.truncate(place.iov_len);
        Ok(bytes)
    }

    /// Returns the set of blocked signals, a bit each.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn blocked(&self) -> io::Result<u64> {
        let mut signals = 0_u64;
        let size = ptr::without_provenance_mut::<c_void>(size_of::<u64>());
        request_with(GET_SIGNAL_MASK, self.tid, size, (&raw mut signals).cast())?;
        Ok(signals)
    }

    /// Replaces the set of blocked signals, a bit each. Returns the former one.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub(crate) fn set_blocked(&self, signals: u64) -> io::Result<u64> {
        let before = self.blocked()?;
        let size = ptr::without_provenance_mut::<c_void>(size_of::<u64>());
        let mut signals = signals;
        request_with(SET_SIGNAL_MASK, self.tid, size, (&raw mut signals).cast())?;
        Ok(before)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if self.stop.is_none() {
            // Only a stopped thread can be let go. The kernel does it once this process ends.
            let _ = self.interrupt(Instant::now() + Duration::from_secs(1));
        }
        let signal = as_argument(self.take_signal());
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

/// Writes memory of a process that this one may trace, as `process_vm_writev(2)` does. Returns the
/// number of bytes, fewer if a page cannot be written.
///
/// # Errors
///
/// Not even the first byte can be written.
pub(super) fn write_memory(pid: u32, address: u64, bytes: &[u8]) -> io::Result<usize> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let to = usize::try_from(address).map_err(io::Error::other)?;
    let here = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let there = libc::iovec { iov_base: ptr::without_provenance_mut(to), iov_len: bytes.len() };
    // SAFETY: the first place is valid for the read of its bytes; the kernel checks the other.
    let written =
        unsafe { libc::process_vm_writev(pid, &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}

/// Ends a process at once.
pub(super) fn kill(pid: u32) {
    if let Ok(pid @ 1..) = libc::pid_t::try_from(pid) {
        // SAFETY: has no memory of this process in it.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// Returns the reason in the status of a stop: see ptrace(2), under `PTRACE_SEIZE`.
fn stop_of(status: c_int) -> Stop {
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 if signal == libc::SIGTRAP | 0x80 => Stop::Call,
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Requested,
        libc::PTRACE_EVENT_STOP => Stop::Group,
        libc::PTRACE_EVENT_CLONE => Stop::Child,
        _ => Stop::Signal(signal),
    }
}

/// Returns a number as an argument of a request.
fn as_argument(number: c_int) -> *mut c_void {
    ptr::without_provenance_mut(usize::try_from(number).unwrap_or(0))
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

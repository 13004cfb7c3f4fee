//! Wraps the system calls that the socket's thread needs.
#![expect(unsafe_code, reason = "system calls that std does not have")]

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{self, Read};
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize};
use std::thread;
use std::time::Duration;

use crate::snapshot::descriptor::out_of_the_way;

/// Returns the effective user of the program.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: a plain call.
    unsafe { libc::geteuid() }
}

/// The memory that must be free for a job to begin, in bytes: the stacks of a thread, and what a
/// collection needs. An allocation that fails would end the program.
const SPARE: usize = 32 << 20;
pub(super) const NO_SPARE_MEMORY: &str = "the program has less than 32 MiB of memory left";

/// Returns whether the system would give the process [`SPARE`] bytes.
pub(super) fn has_spare_memory() -> bool {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: the kernel chooses an unused range, so no mapping is replaced.
    let pages = unsafe { libc::mmap(std::ptr::null_mut(), SPARE, access, kind, -1, 0) };
    // SAFETY: the range was mapped above, and nothing refers to it.
    pages != libc::MAP_FAILED && unsafe { libc::munmap(pages, SPARE) } == 0
}

/// The process at the other end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process number in this process's namespace.
    pub pid: u32,
    /// The process's user.
    pub uid: u32,
}

/// Returns the kernel's record of the other end: the listener for a client, the client for a
/// server.
///
/// # Errors
///
/// Returns the error of the system call.
#[cfg(target_os = "linux")]
pub fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let mut found = MaybeUninit::<libc::ucred>::zeroed();
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: `found` has room for `length` bytes.
    check(unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            found.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    // SAFETY: plain numbers, zeroed before the call and written by it.
    let found = unsafe { found.assume_init() };
    Ok(Peer { pid: u32::try_from(found.pid).unwrap_or(0), uid: found.uid })
}

/// Returns an error: this is not implemented on this system.
///
/// # Errors
///
/// Always fails.
#[cfg(not(target_os = "linux"))]
pub fn peer(_stream: &UnixStream) -> io::Result<Peer> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Opens a socket that programs started by this one do not inherit.
#[cfg(target_os = "linux")]
fn socket() -> io::Result<OwnedFd> {
    // SAFETY: a plain call.
    let descriptor =
        unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    check(descriptor)?;
    // SAFETY: just opened, with no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Opens a socket that programs started by this one do not inherit, unless another thread starts
/// one at the same moment.
#[cfg(not(target_os = "linux"))]
fn socket() -> io::Result<OwnedFd> {
    // SAFETY: a plain call.
    let descriptor = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
    check(descriptor)?;
    // SAFETY: just opened, with no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    set(&socket, libc::F_SETFD, libc::FD_CLOEXEC)?;
    Ok(socket)
}

/// Sets flags of a descriptor.
#[cfg(not(target_os = "linux"))]
fn set(descriptor: &OwnedFd, command: c_int, flags: c_int) -> io::Result<()> {
    // SAFETY: a plain call on an open descriptor.
    check(unsafe { libc::fcntl(descriptor.as_raw_fd(), command, flags) })
}

/// Opens a pipe of which neither end waits, and programs started by this one inherit none. Returns
/// the ends for reading and writing.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    #[cfg(target_os = "linux")]
    // SAFETY: `ends` has room for both.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
    #[cfg(not(target_os = "linux"))]
    // SAFETY: `ends` has room for both.
    check(unsafe { libc::pipe(ends.as_mut_ptr()) })?;
    // SAFETY: just opened, with no other owner.
    let reading = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    // SAFETY: as above.
    let writing = unsafe { OwnedFd::from_raw_fd(ends[1]) };
    #[cfg(not(target_os = "linux"))]
    for end in [&reading, &writing] {
        set(end, libc::F_SETFD, libc::FD_CLOEXEC)?;
        set(end, libc::F_SETFL, libc::O_NONBLOCK)?;
    }
    Ok((reading, writing))
}

/// Listens at `path`, with mode 0600 from the start.
pub(super) fn listen(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: all zeros is an address of no family, with an empty path.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or_default();
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        let message =
            format!("{}: too long a path for a socket; choose a shorter folder", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    for (place, byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = libc::c_char::from_ne_bytes([*byte]);
    }
    let socket = socket()?;
    let descriptor = socket.as_raw_fd();
    // The mode of the file that `bind` makes.
    // SAFETY: a plain call on an open descriptor.
    check(unsafe { libc::fchmod(descriptor, 0o600) })?;
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_un>()).unwrap_or(0);
    // SAFETY: a complete address of that length.
    check(unsafe { libc::bind(descriptor, (&raw const address).cast(), length) })?;
    // SAFETY: a plain call on an open descriptor.
    check(unsafe { libc::listen(descriptor, 64) })?;
    let listener = UnixListener::from(out_of_the_way(socket));
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The events to wait for at a descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interest {
    pub(super) descriptor: RawFd,
    pub(super) reading: bool,
    pub(super) writing: bool,
}

/// The events at a descriptor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ready {
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) gone: bool,
}

/// The time to wait after a failed call before it is tried again.
pub(super) const BACK_OFF: Duration = Duration::from_millis(100);

/// Waits for events, at most for `limit`.
pub(super) fn wait(interests: &[Interest], limit: Duration) -> Vec<Ready> {
    let mut polled: Vec<libc::pollfd> = interests
        .iter()
        .map(|interest| libc::pollfd {
            fd: interest.descriptor,
            events: if interest.reading { libc::POLLIN } else { 0 }
                | if interest.writing { libc::POLLOUT } else { 0 },
            revents: 0,
        })
        .collect();
    // Rounded up: a deadline must have passed when it is checked.
    let timeout = c_int::try_from(limit.as_millis() + 1).unwrap_or(c_int::MAX);
    let count = libc::nfds_t::try_from(polled.len()).unwrap_or(0);
    // SAFETY: `count` valid entries.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), count, timeout) };
    if ready <= 0 {
        if ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            // For example, the program has set its limit of descriptors to zero. Do not spin.
            thread::sleep(limit.min(BACK_OFF));
        }
        return vec![Ready::default(); interests.len()];
    }
    let has = |entry: &libc::pollfd, flags| entry.revents & flags != 0;
    polled
        .iter()
        .map(|entry| Ready {
            readable: has(entry, libc::POLLIN),
            writable: has(entry, libc::POLLOUT),
            gone: has(entry, libc::POLLHUP | libc::POLLERR | libc::POLLNVAL),
        })
        .collect()
}

/// Blocks all signals on this thread except faults, which the program may handle.
///
/// The signals belong to the program's own threads. With `SIGPIPE` blocked, a client that hangs up
/// cannot end the program.
pub(super) fn block_signals() {
    let faults =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: a valid location for the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    for fault in faults {
        // SAFETY: an initialized set and an existing signal.
        unsafe { libc::sigdelset(all.as_mut_ptr(), fault) };
    }
    // SAFETY: an initialized set. The old one is not returned.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut()) };
}

/// The descriptor that a forked child must close, or -1.
static INHERITED: AtomicI32 = AtomicI32::new(-1);

/// Has forked children close a listener, until it is dropped: before the listener is closed.
#[derive(Debug)]
pub(super) struct ClosedInChildren(RawFd);

impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        // A server that has started meanwhile keeps its own entry.
        let _ = INHERITED.compare_exchange(self.0, -1, Relaxed, Relaxed);
    }
}

/// Closes the socket in forked children, which have no thread that answers.
pub(super) fn close_in_children(listener: &UnixListener) -> io::Result<ClosedInChildren> {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    extern "C" fn in_child() {
        let descriptor = INHERITED.swap(-1, Relaxed);
        if descriptor >= 0 {
            // SAFETY: the child's copy of the listener. The thread that uses it is not in the
            // child.
            unsafe { libc::close(descriptor) };
        }
    }
    let descriptor = listener.as_raw_fd();
    INHERITED.store(descriptor, Relaxed);
    let closed = ClosedInChildren(descriptor);
    if IS_REGISTERED.swap(true, Relaxed) {
        return Ok(closed);
    }
    // SAFETY: the function lives as long as the code. Code that declares an allocator or serves is
    // never unloaded.
    let error = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    if error == 0 {
        return Ok(closed);
    }
    IS_REGISTERED.store(false, Relaxed);
    Err(io::Error::from_raw_os_error(error))
}

/// The pipe that the signal handler writes to. It is made once in a process and stays open, because
/// a handler may be about to write at any time.
static SIGNAL_ENDS: SignalEnds =
    SignalEnds { pid: AtomicU32::new(0), reading: AtomicI32::new(-1), writing: AtomicI32::new(-1) };

struct SignalEnds {
    /// The process that made the pipe. Its forked children leave the pipe alone.
    pid: AtomicU32,
    reading: AtomicI32,
    writing: AtomicI32,
}

/// The action at the signal before ours.
static ACTION_BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// A handler that writes to a pipe at each signal, until it is removed.
#[derive(Debug)]
pub(super) struct SignalHandler {
    signal: c_int,
}

impl SignalHandler {
    /// Installs the handler. Only one thread at a time may do so.
    ///
    /// # Errors
    ///
    /// Fails if the program handles the signal itself.
    pub(super) fn install(signal: c_int) -> io::Result<Self> {
        let now = action_of(signal)?;
        // Ignored: not by the program, but by what starts it, for example `perf`.
        if [libc::SIG_DFL, libc::SIG_IGN].contains(&now) {
            ACTION_BEFORE.store(now, Relaxed);
        } else if now != own_action() {
            let message =
                format!("signal {signal} is handled by the program already; choose another");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        // A forked child has its parent's handler, and the numbers of its parent's pipe.
        if SIGNAL_ENDS.pid.load(Relaxed) != std::process::id() {
            let (reading, writing) = pipe()?;
            SIGNAL_ENDS.reading.store(reading.into_raw_fd(), Relaxed);
            SIGNAL_ENDS.writing.store(writing.into_raw_fd(), Relaxed);
            // Release: `write_to_pipe` acquires it, and then finds the ends.
            SIGNAL_ENDS.pid.store(std::process::id(), Release);
        }
        set_action(signal, own_action())?;
        Ok(SignalHandler { signal })
    }

    /// Returns the end of the pipe to read from, without the signals so far.
    pub(super) fn reading_end(&self) -> io::Result<File> {
        let end = SIGNAL_ENDS.reading.load(Relaxed);
        // SAFETY: the pipe stays open.
        let mut end = File::from(unsafe { BorrowedFd::borrow_raw(end) }.try_clone_to_owned()?);
        while end.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
        Ok(end)
    }

    /// Restores the action before, unless the program has replaced the handler.
    pub(super) fn remove(self) {
        if action_of(self.signal).is_ok_and(|now| now == own_action()) {
            // It was valid before.
            let _ = set_action(self.signal, ACTION_BEFORE.load(Relaxed));
        }
    }
}

/// Handles a signal.
extern "C" fn write_to_pipe(_signal: c_int) {
    // SAFETY: a plain call, which is allowed in a signal handler.
    let own = unsafe { libc::getpid() };
    // Acquire: published by `install` after the ends.
    if u32::try_from(own) != Ok(SIGNAL_ENDS.pid.load(Acquire)) {
        return;
    }
    let byte = 1_u8;
    // SAFETY: a location that belongs to this thread.
    let errno = unsafe { errno() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let end = SIGNAL_ENDS.writing.load(Relaxed);
    // SAFETY: `write` is allowed in a signal handler. A full pipe has enough bytes.
    unsafe { libc::write(end, (&raw const byte).cast::<c_void>(), 1) };
    // SAFETY: as above. The interrupted code finds its value unchanged.
    unsafe { *errno = before };
}

fn own_action() -> usize {
    write_to_pipe as extern "C" fn(c_int) as usize
}

fn action_of(signal: c_int) -> io::Result<usize> {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a query; `now` is a valid location for the answer.
    check(unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) })?;
    // SAFETY: written by the call.
    Ok(unsafe { now.assume_init() }.sa_sigaction)
}

fn set_action(signal: c_int, handler: usize) -> io::Result<()> {
    // SAFETY: all zeros is the default action, without flags and blocked signals.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler;
    // On the alternate stack if there is one: the thread's own may be a small one.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler makes only calls that a signal handler may make.
    check(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })
}

/// Returns the location of this thread's `errno`.
///
/// # Safety
///
/// The location must not be used on other threads.
unsafe fn errno() -> *mut c_int {
    #[cfg(target_os = "linux")]
    // SAFETY: a plain call.
    let place = unsafe { libc::__errno_location() };
    #[cfg(not(target_os = "linux"))]
    // SAFETY: a plain call.
    let place = unsafe { libc::__error() };
    place
}

fn check(result: c_int) -> io::Result<()> {
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_late_leaves_the_entry_of_the_next_one() {
        let folder = std::env::temp_dir();
        let sockets = ["old", "new"].map(|name| {
            let path = folder.join(format!("memreport-{name}-{}.sock", std::process::id()));
            let socket = listen(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            socket
        });
        let [old, new] = sockets.each_ref().map(|socket| close_in_children(socket).unwrap());
        drop(old);
        assert_eq!(INHERITED.load(Relaxed), sockets[1].as_raw_fd());
        drop(new);
        assert_eq!(INHERITED.load(Relaxed), -1);
    }

    /// Sends this process a signal that does nothing by default. Returns whether `end` has it.
    fn arrives(end: &mut File) -> bool {
        // SAFETY: a plain call.
        assert_eq!(unsafe { libc::raise(libc::SIGWINCH) }, 0);
        end.read(&mut [0; 64]).is_ok()
    }

    #[test]
    fn a_signal_arrives_until_its_handler_is_removed_and_not_in_a_child() {
        let handler = SignalHandler::install(libc::SIGWINCH).unwrap();
        let mut end = handler.reading_end().unwrap();
        assert!(arrives(&mut end));
        handler.remove();
        assert!(!arrives(&mut end));
        let handler = SignalHandler::install(libc::SIGWINCH).unwrap();
        assert!(arrives(&mut end));
        // As in a forked child, which then makes a pipe of its own.
        SIGNAL_ENDS.pid.store(0, Relaxed);
        assert!(!arrives(&mut end));
        SignalHandler::install(libc::SIGWINCH).unwrap();
        assert!(arrives(&mut handler.reading_end().unwrap()) && !arrives(&mut end));
        handler.remove();
    }
}

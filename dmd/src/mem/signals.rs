//! Signals, exit handlers and service threads, without a byte of the program's heap.
#![expect(unsafe_code, reason = "system calls, and a signal handler")]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::IntoRawFd;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicPtr};

use memreport::__private::out_of_the_way;

use super::sys;

/// The ends of the pipe that the signal handler writes to.
static READ_END: AtomicI32 = AtomicI32::new(-1);
static WRITE_END: AtomicI32 = AtomicI32::new(-1);

/// The reason why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The descriptor is readable.
    Readable,
    /// This signal arrived.
    Signal(c_int),
    /// The timeout expired.
    TimedOut,
}

/// Redirects these signals to a pipe. Signals that the program handles itself stay unchanged.
pub(crate) fn redirect_to_pipe(signals: &[c_int]) -> io::Result<()> {
    let [read, write] = sys::pipe()?.map(|end| out_of_the_way(end).into_raw_fd());
    READ_END.store(read, Relaxed);
    WRITE_END.store(write, Relaxed);
    for signal in signals {
        let mut now = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a null action changes nothing, and `now` is valid for the write.
        check(unsafe { libc::sigaction(*signal, ptr::null(), now.as_mut_ptr()) })?;
        // SAFETY: the successful call above initialised it.
        let mut action = unsafe { now.assume_init() };
        if action.sa_sigaction == libc::SIG_DFL {
            action.sa_sigaction = write_to_pipe as extern "C" fn(c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            // SAFETY: the handler calls only async-signal-safe functions.
            check(unsafe { libc::sigaction(*signal, &raw const action, ptr::null_mut()) })?;
        }
    }
    Ok(())
}

extern "C" fn write_to_pipe(signal: c_int) {
    let byte = u8::try_from(signal).unwrap_or(0);
    sys::keeping_errno(|| {
        // SAFETY: `write` is async-signal-safe, and one byte is readable. A full pipe drops the
        // signal: enough others wait in it.
        unsafe { libc::write(WRITE_END.load(Relaxed), (&raw const byte).cast(), 1) };
    });
}

/// Waits until the descriptor is readable, a signal arrives, or this many milliseconds have passed.
/// A timeout of -1 never expires.
pub(crate) fn wait(descriptor: c_int, timeout: c_int) -> Event {
    let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled = [poll(READ_END.load(Relaxed)), poll(descriptor)];
    // SAFETY: `polled` is an array of two valid entries.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), 2, timeout) };
    if ready <= 0 {
        return Event::TimedOut;
    }
    let mut signal = 0_u8;
    // SAFETY: one byte is writable. The pipe is non-blocking, so an empty one returns at once.
    if unsafe { libc::read(polled[0].fd, (&raw mut signal).cast(), 1) } == 1 {
        return Event::Signal(c_int::from(signal));
    }
    Event::Readable
}

/// Ends the process by this signal's default action.
pub(crate) fn end_by(signal: c_int) {
    // SAFETY: every signal accepts the default action.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: `getpid` has no precondition.
    let own = unsafe { libc::getpid() };
    // SAFETY: a process may signal itself.
    unsafe { libc::kill(own, signal) };
}

/// The functions of [`at_exit`], in their order; null if there are fewer.
static EXIT_HANDLERS: [AtomicPtr<c_void>; 8] = [const { AtomicPtr::new(ptr::null_mut()) }; 8];

/// Runs `function` when the process ends by `exit`, `quick_exit` or a return from `main`. It may
/// run twice.
pub(crate) fn at_exit(function: extern "C" fn()) {
    let address = function as *mut c_void;
    for place in &EXIT_HANDLERS {
        // Relaxed: a function is there before the program.
        if place.compare_exchange(ptr::null_mut(), address, Relaxed, Relaxed).is_ok() {
            break;
        }
    }
    // SAFETY: a function pointer is valid for the whole process. On failure nothing runs at exit.
    unsafe { libc::atexit(function) };
    sys::at_quick_exit(function);
}

/// Runs the functions of [`at_exit`], the last one first.
pub(crate) fn run_exit_handlers() {
    for place in EXIT_HANDLERS.iter().rev() {
        let address = place.load(Relaxed);
        if !address.is_null() {
            // SAFETY: the place has a function pointer of `at_exit`.
            let function = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(address) };
            function();
        }
    }
}

/// Runs `function` in children of `fork`, on their only thread.
pub(crate) fn at_fork(function: extern "C" fn()) {
    // SAFETY: the function lives as long as the code, which is never unloaded. On failure nothing
    // runs in children.
    unsafe { libc::pthread_atfork(None, None, Some(function)) };
}

/// Runs `function` on a new thread that blocks all signals.
pub(crate) fn spawn(function: extern "C" fn()) -> io::Result<()> {
    extern "C" fn start(function: *mut c_void) -> *mut c_void {
        // SAFETY: the argument is the function pointer that is passed to `pthread_create` below.
        let function = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(function) };
        function();
        ptr::null_mut()
    }
    let (mut all, mut before) =
        (MaybeUninit::<libc::sigset_t>::zeroed(), MaybeUninit::<libc::sigset_t>::zeroed());
    // SAFETY: `all` is valid for the write of a signal set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is initialised, and `before` is valid for the write. The new thread inherits
    // the mask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let mut thread = MaybeUninit::<libc::pthread_t>::zeroed();
    let argument = function as *mut c_void;
    // SAFETY: `thread` is valid for the write; null attributes are the default ones.
    let error = unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), start, argument) };
    // SAFETY: the call above initialised `before` with this thread's former mask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Blocks all signals on this thread except faults, which the program may handle.
///
/// A handler of the program could wait for a thread that waits for this one. And a write to a file
/// beyond the limit fails, where the signal of this limit would end the program.
pub(crate) fn block_all() {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: `all` is valid for the write of a signal set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP] {
        // SAFETY: an initialised set, and a signal that exists.
        unsafe { libc::sigdelset(all.as_mut_ptr(), fault) };
    }
    // SAFETY: `all` is initialised. The old mask is not returned.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), ptr::null_mut()) };
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

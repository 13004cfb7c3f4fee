//! A thread that waits for requests and signals, without a byte of the program's heap.
#![expect(unsafe_code, reason = "system calls, and a signal handler")]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

/// The ends of the pipe that the handler writes to.
static READ_END: AtomicI32 = AtomicI32::new(-1);
static WRITE_END: AtomicI32 = AtomicI32::new(-1);

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The descriptor can be read.
    Readable,
    /// This signal came.
    Signal(c_int),
    /// Nothing happened in time.
    TimedOut,
}

/// Has these signals written to a pipe instead of ending the program; but for those that the program handles itself.
pub(crate) fn redirect_to_pipe(signals: &[c_int]) -> io::Result<()> {
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for both.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
    READ_END.store(ends[0], Relaxed);
    WRITE_END.store(ends[1], Relaxed);
    for signal in signals {
        let mut now = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks only; `now` is a valid place for the answer.
        check(unsafe { libc::sigaction(*signal, ptr::null(), now.as_mut_ptr()) })?;
        // SAFETY: filled in by the call.
        let mut action = unsafe { now.assume_init() };
        if action.sa_sigaction == libc::SIG_DFL {
            action.sa_sigaction = write_to_pipe as extern "C" fn(c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            // SAFETY: the handler does only what a handler may.
            check(unsafe { libc::sigaction(*signal, &raw const action, ptr::null_mut()) })?;
        }
    }
    Ok(())
}

extern "C" fn write_to_pipe(signal: c_int) {
    let byte = u8::try_from(signal).unwrap_or(0);
    // SAFETY: a place of this thread's.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: `write` may be called in a handler; a full pipe has signals enough.
    unsafe { libc::write(WRITE_END.load(Relaxed), (&raw const byte).cast(), 1) };
    // SAFETY: as above. What the interrupted code sees is as it was.
    unsafe { *errno = before };
}

/// Waits until the descriptor can be read, a signal comes, or so many milliseconds have passed; -1 is for ever.
pub(crate) fn wait(descriptor: c_int, timeout: c_int) -> Event {
    let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled = [poll(READ_END.load(Relaxed)), poll(descriptor)];
    // SAFETY: two valid entries.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), 2, timeout) };
    if ready <= 0 {
        return Event::TimedOut;
    }
    let mut signal = 0_u8;
    // SAFETY: a byte to read into; the pipe does not block, and an empty one gives none.
    if unsafe { libc::read(polled[0].fd, (&raw mut signal).cast(), 1) } == 1 {
        return Event::Signal(c_int::from(signal));
    }
    Event::Readable
}

/// Ends the program as the signal would have.
pub(crate) fn end_by(signal: c_int) {
    // SAFETY: the default action is always allowed.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: a plain call.
    let own = unsafe { libc::getpid() };
    // SAFETY: to this very process.
    unsafe { libc::kill(own, signal) };
}

/// Runs `function` when the program ends by `exit` or by returning from `main`.
pub(crate) fn at_exit(function: extern "C" fn()) {
    // SAFETY: a function that lives for ever. Without a place for it, there is no state at exit to be seen.
    unsafe { libc::atexit(function) };
}

/// Runs `function` on a thread of its own that takes no signals.
pub(crate) fn spawn(function: extern "C" fn()) -> io::Result<()> {
    extern "C" fn start(function: *mut c_void) -> *mut c_void {
        // SAFETY: the function pointer that was handed in below.
        let function = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(function) };
        function();
        ptr::null_mut()
    }
    let (mut all, mut before) =
        (MaybeUninit::<libc::sigset_t>::zeroed(), MaybeUninit::<libc::sigset_t>::zeroed());
    // SAFETY: a valid place for the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the new thread inherits the mask, and this one gets its own back.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let mut thread = MaybeUninit::<libc::pthread_t>::zeroed();
    let argument = function as *mut c_void;
    // SAFETY: valid places; the default attributes.
    let error = unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), start, argument) };
    // SAFETY: the mask that was asked for above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

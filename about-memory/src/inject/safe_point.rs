//! Finds a thread that can be borrowed: it holds no lock of the allocator's or of the linker's.
//!
//! A thread in its own code, or in a system call that waits for something else, is outside of
//! these. One in the C library or the linker may be in the midst of a change; it is let go at once.

use std::thread;
use std::time::{Duration, Instant};

use super::error::InjectError;
use super::program::Program;
use crate::other_process::{ProcessError, Registers, Stop, Traced, threads};

/// The first pause between two looks at all threads. It doubles, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The time that a thread has to stop.
const STOP_TIME: Duration = Duration::from_millis(200);

/// System calls of x86-64 in which a thread waits for time, descriptors or other processes: `read`,
/// `write`, `poll`, `select`, `pause`, `nanosleep`, `accept`, `sendto`, `recvfrom`, `sendmsg`,
/// `recvmsg`, `wait4`, `msgrcv`, `rt_sigtimedwait`, `rt_sigsuspend`, `io_getevents`,
/// `semtimedop`, `clock_nanosleep`, `epoll_wait`, `waitid`, `pselect6`, `ppoll`, `epoll_pwait`,
/// `accept4`, `recvmmsg`, `io_uring_enter`, `epoll_pwait2`. Also `restart_syscall`: a wait with a
/// time limit that was interrupted, as by an earlier look. No lock is waited for with one.
const WAITS: &[u64] = &[
    0, 1, 7, 23, 34, 35, 43, 44, 45, 46, 47, 61, 70, 128, 130, 208, 219, 220, 230, 232, 247, 270,
    271, 281, 288, 299, 426, 441,
];

/// The system call in which a thread waits for a lock or an event of another thread.
const FUTEX: u64 = 202;

/// Stops a thread that can be borrowed.
///
/// # Errors
///
/// None is found in time, or the program may not be traced.
pub(super) fn find(program: &Program, end: Instant) -> Result<Traced, InjectError> {
    let pid = program.pid;
    let mut pause = FIRST_PAUSE;
    loop {
        let mut threads = threads(pid)?;
        // The main thread first: libraries expect to be loaded on it.
        threads.sort_by_key(|tid| (*tid != pid, *tid));
        for tid in threads {
            let mut traced = match Traced::seize(tid) {
                Ok(traced) => traced,
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(error) => return Err(ProcessError::NotAllowed(pid, error).into()),
            };
            match traced.interrupt(Instant::now() + STOP_TIME) {
                Ok(Some(Stop::Requested)) => {}
                Ok(Some(Stop::Group)) => return Err(InjectError::Stopped(pid)),
                // A signal is about to be delivered: let it be, at the next look.
                Ok(Some(Stop::Signal(_) | Stop::Child | Stop::Call) | None) | Err(_) => continue,
            }
            if traced.registers().is_ok_and(|registers| is_safe(program, &registers)) {
                return Ok(traced);
            }
        }
        if Instant::now() >= end {
            return Err(InjectError::Busy(pid));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns whether a thread with these registers holds none of the locks.
fn is_safe(program: &Program, registers: &Registers) -> bool {
    // The kernel keeps the number of the call that was interrupted, or all ones.
    let is_in_call = registers.orig_rax.cast_signed() >= 0;
    if !is_in_call {
        return !program.is_system_code(registers.rip);
    }
    match registers.orig_rax {
        FUTEX => !program.is_system_data(registers.rdi),
        number => WAITS.contains(&number),
    }
}

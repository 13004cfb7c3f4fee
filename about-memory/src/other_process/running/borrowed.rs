//! Has a stopped thread make a system call, and leaves it as it was, even if this process is killed
//! meanwhile.
//!
//! The thread calls a function of the C library whose return address leads to `rt_sigreturn(2)`,
//! with a frame that restores all its registers, as after a signal handler. So it needs nobody to
//! go on. If all goes well, it never gets there: its registers are restored after the system call.

use std::io;
use std::time::{Duration, Instant};

use super::exported::{exported, find_code};
use super::signal_frame::{Frame, ROOM, ThreadState, resumed};
use super::trace::{Options, Registers, Stop, Traced, read_memory, write_memory};
use crate::other_process::Mapping;

/// The bytes below a stack pointer that code may use without moving it (the System V ABI).
const RED_ZONE: u64 = 128;

/// The time that a system call has.
const CALL_TIME: Duration = Duration::from_secs(5);

/// All signals. The kernel does not block SIGKILL and SIGSTOP.
const ALL_SIGNALS: u64 = u64::MAX;

/// The code after a signal handler: `mov $15, %rax; syscall`. Debuggers know it, so it does not
/// change.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// The addresses of functions of a process's C library, and of the code after a signal handler.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Functions {
    pub(super) clone: u64,
    pub(super) exit: u64,
    pub(super) system_call: u64,
    signal_return: u64,
}

impl Functions {
    /// Finds the functions; `None` without glibc.
    pub(crate) fn of(pid: u32, mappings: &[Mapping]) -> Option<Self> {
        let mut modules = mappings.iter().filter(|mapping| mapping.offset == 0);
        let is_libc = |name: &str| name == "libc.so.6" || name.starts_with("libc-2.");
        let module = modules.find(|mapping| is_libc(mapping.file_name()))?;
        let functions = exported(pid, module)?;
        let of = |name| functions.get(name).copied();
        Some(Functions {
            clone: of("clone")?,
            exit: of("_exit")?,
            system_call: of("syscall")?,
            signal_return: find_code(pid, module, &SIGNAL_RETURN)?,
        })
    }
}

/// The end of a system call that a borrowed thread has made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Returned {
    pub(crate) result: u64,
    /// The number of the child that it has made.
    pub(crate) child: Option<libc::pid_t>,
}

/// A stopped thread that has called a function. Dropping it restores its registers and the signals
/// that it blocks.
pub(crate) struct Borrowed<'t> {
    thread: &'t mut Traced,
    /// The registers with which the thread goes on, and the signals that it blocks then.
    after: Registers,
    blocked: u64,
    /// A signal that arrived meanwhile and cannot be blocked.
    signal: Option<i32>,
}

impl<'t> Borrowed<'t> {
    /// Prepares the thread to call a function with up to four arguments. `None` as an argument is
    /// an address of the stack that the function may write below.
    ///
    /// # Errors
    ///
    /// The thread has stopped for a signal, its stack is short, it is in a restartable sequence,
    /// which the kernel would not abort afterwards, or it has ended.
    pub(crate) fn begin(
        thread: &'t mut Traced,
        pid: u32,
        function: u64,
        arguments: [Option<u64>; 4],
        functions: &Functions,
    ) -> io::Result<Self> {
        let before = thread.registers()?;
        // At a call's end it was borrowed before, and is restored.
        let is_between = matches!(thread.stop(), Some(Stop::Requested | Stop::Call));
        if !is_between || is_in_sequence(thread, pid, &before)? {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let (after, blocked) = (resumed(&before), thread.blocked()?);
        let floating_point = thread.floating_point()?;
        let state = ThreadState { registers: &after, floating_point: &floating_point, blocked };
        let end = before.rsp.saturating_sub(RED_ZONE);
        let frame = Frame::below(end, &state, functions.signal_return);
        let free = frame.address.saturating_sub(ROOM);
        // Its stack has the room, and no guard page is in the way.
        if read_memory(pid, free, &mut [0; 8])? < 8
            || write_memory(pid, frame.address, &frame.bytes)? < frame.bytes.len()
        {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let mut registers = before;
        (registers.rip, registers.rsp, registers.rax) = (function, frame.address, 0);
        // No interrupted system call is started again.
        registers.orig_rax = u64::MAX;
        // The direction flag is clear in every call.
        registers.eflags &= !0x400;
        [registers.rdi, registers.rsi, registers.rdx, registers.rcx] =
            arguments.map(|argument| argument.unwrap_or(free + ROOM / 2));
        (registers.r8, registers.r9) = (0, 0);
        thread.set_registers(&registers)?;
        let borrowed = Borrowed { thread, after, blocked, signal: None };
        borrowed.thread.set_blocked(ALL_SIGNALS)?;
        borrowed.thread.set_options(Options::STOP_AT_CALLS)?;
        Ok(borrowed)
    }

    /// Lets the thread run to the next stop. Returns the end of the system call that the function
    /// makes, once it is there.
    ///
    /// # Errors
    ///
    /// The call fails or does not return in time, or the thread ends.
    pub(super) fn advance(&mut self, so_far: &mut Progress) -> io::Result<Option<Returned>> {
        self.thread.resume_to_call()?;
        let stop = self.thread.wait(Instant::now() + CALL_TIME)?;
        let signal = self.thread.take_signal();
        match stop.ok_or(io::ErrorKind::TimedOut)? {
            Stop::Child => so_far.child = Some(self.thread.new_child()?),
            Stop::Call if so_far.is_in_call => {
                let result = self.thread.registers()?.rax;
                return match i32::try_from(result.cast_signed()) {
                    // The kernel returns an error as its negative number.
                    Ok(error @ -4095..=-1) => Err(io::Error::from_raw_os_error(-error)),
                    _ => Ok(Some(Returned { result, child: so_far.child })),
                };
            }
            Stop::Call => so_far.is_in_call = true,
            Stop::Signal(libc::SIGSTOP) => self.signal = Some(signal),
            Stop::Requested | Stop::Group => {}
            // A fault of the borrowed code: the program has no part in it.
            Stop::Signal(_) => return Err(io::ErrorKind::Other.into()),
        }
        Ok(None)
    }

    /// Lets the thread run to the end of the system call that the function makes.
    ///
    /// # Errors
    ///
    /// The call fails or does not return in time, or the thread ends.
    pub(crate) fn call(mut self) -> io::Result<Returned> {
        let mut so_far = Progress::default();
        loop {
            if let Some(returned) = self.advance(&mut so_far)? {
                return Ok(returned);
            }
        }
    }
}

/// The course of a borrowed thread's call.
#[derive(Debug, Default)]
pub(super) struct Progress {
    is_in_call: bool,
    child: Option<libc::pid_t>,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        // A call that did not return in time. Nothing more can be done on errors: the program has
        // ended then.
        if self.thread.stop().is_none() {
            let _ = self.thread.interrupt(Instant::now() + CALL_TIME);
        }
        let _ = self.thread.set_options(Options::default());
        let _ = self.thread.set_blocked(self.blocked);
        let _ = self.thread.set_registers(&self.after);
        self.thread.set_signal(self.signal.unwrap_or(0));
    }
}

/// Returns whether a thread is in a restartable sequence. There is no system call in one.
fn is_in_sequence(thread: &Traced, pid: u32, registers: &Registers) -> io::Result<bool> {
    if registers.orig_rax.cast_signed() >= 0 {
        return Ok(false);
    }
    let Some(word) = thread.sequence_word() else { return Ok(false) };
    let mut sequence = [0; 8];
    Ok(read_memory(pid, word, &mut sequence)? < 8 || sequence != [0; 8])
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::mem::ManuallyDrop;
    use std::process::{Command, Stdio};
    use std::thread;

    use super::*;
    use crate::other_process::{mappings, threads};

    /// Has the program make a child, up to a stop, and lets the tracing thread end there, as if
    /// this process were killed. Returns whether the call was at its end.
    fn abandon(pid: u32, stops: usize) -> bool {
        let functions = Functions::of(pid, &mappings(pid).expect("it runs")).expect("it has glibc");
        let tracing = thread::spawn(move || {
            let mut traced = ManuallyDrop::new(Traced::seize(pid).expect("ours"));
            traced.interrupt(Instant::now() + CALL_TIME).expect("it runs").expect("it stops");
            let arguments = [Some(functions.exit), None, Some(0), Some(0)];
            let borrowed =
                Borrowed::begin(&mut traced, pid, functions.clone, arguments, &functions);
            let mut borrowed = ManuallyDrop::new(borrowed.expect("it waits in a call"));
            let mut so_far = Progress::default();
            let mut advance = || borrowed.advance(&mut so_far).expect("it goes on");
            let returned = (0..stops).filter_map(|_| advance()).count();
            returned > 0
        });
        tracing.join().expect("it ends")
    }

    /// The system call in which `cat` waits is made again.
    #[test]
    fn a_borrowed_thread_that_is_abandoned_goes_on() {
        for stops in 0.. {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut cat = command.spawn().expect("it starts");
            let pid = cat.id();
            let blocked = || {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
                let status = status.expect("it runs");
                status.lines().find(|line| line.starts_with("SigBlk:")).map(str::to_owned)
            };
            let blocked_before = blocked();
            let mut input = cat.stdin.take().expect("a pipe");
            let mut output = BufReader::new(cat.stdout.take().expect("a pipe"));
            let mut tell = |line: &str| {
                let mut answer = String::new();
                input.write_all(line.as_bytes()).expect("it reads");
                output.read_line(&mut answer).expect("it answers");
                assert_eq!(answer, line, "after {stops} stops");
            };
            tell("before\n");
            let is_end = abandon(pid, stops);
            tell("after\n");
            assert_eq!(blocked(), blocked_before, "after {stops} stops");
            assert_eq!(threads(pid).map(|threads| threads.len()).ok(), Some(1));
            drop(input);
            assert!(cat.wait().expect("it ends").success(), "after {stops} stops");
            if is_end {
                return assert!(stops >= 3, "the beginning, the child, and the end");
            }
        }
    }
}

//! Has a stopped thread call functions of its process, and leaves it as it was, even if this
//! process is killed meanwhile.
//!
//! The calls have a mapping of their own: code, texts, and a stack. A function returns to the code,
//! which keeps its result and then ends as a signal handler does (`rt_sigreturn(2)`), with a frame
//! that restores all registers of the thread. So the thread needs nobody to go on.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use super::error::InjectError;
use super::program::Program;
use crate::other_process::{
    Borrowed, Frame, Options, ProcessError, Registers, Stop, ThreadState, Traced, resumed,
};

/// The parts of the mapping: the code, the result with the texts, and the stack above them.
const CODE: u64 = 4096;
const TEXTS: u64 = 16 * 1024;
const STACK: u64 = 256 * 1024;
const MAPPING: u64 = CODE + TEXTS + STACK;

/// The bytes of the result, at the start of the texts.
const RESULT: u64 = 8;

/// The code to which functions return: `mov %rax, RESULT(%rip); mov $15, %rax; syscall`.
const RETURN: [u8; 16] = [
    0x48, 0x89, 0x05, 0xf9, 0x0f, 0, 0, // CODE less these seven bytes
    0x48, 0xc7, 0xc0, 15, 0, 0, 0, // the number of `rt_sigreturn(2)`
    0x0f, 0x05,
];

/// All signals but those of faults, which cannot be blocked.
const BLOCKED: u64 = !(bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGILL)
    | bit(libc::SIGFPE)
    | bit(libc::SIGTRAP));

#[expect(clippy::cast_sign_loss, reason = "signals have small positive numbers")]
const fn bit(signal: i32) -> u64 {
    1 << (signal as u64 - 1)
}

/// A stopped thread that calls functions. Dropping it lets the thread go on: from where it was, or
/// with the function that it is in, and then from there.
pub(super) struct Caller<'p> {
    program: &'p Program,
    thread: Traced,
    memory: File,
    end: Instant,
    /// The state with which the thread goes on.
    after: Registers,
    floating_point: Vec<u8>,
    blocked: u64,
    /// A signal that arrived meanwhile and cannot be blocked.
    signal: i32,
    /// The start of the mapping, and the place for the next text.
    mapping: u64,
    next_text: u64,
}

impl<'p> Caller<'p> {
    /// Prepares the thread: maps the memory that calls need.
    pub(super) fn begin(
        program: &'p Program,
        mut thread: Traced,
        end: Instant,
    ) -> Result<Self, InjectError> {
        let failed = |error| failed(program, error);
        let path = format!("/proc/{}/mem", program.pid);
        let memory = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let after = resumed(&thread.registers().map_err(failed)?);
        let blocked = thread.blocked().map_err(failed)?;
        let floating_point = thread.floating_point().map_err(failed)?;
        // Readable and writable, private and anonymous.
        let mapping = borrow(program, &mut thread, program.mmap, [0, MAPPING, 3, 0x22])?;
        memory.write_all_at(&RETURN, mapping).map_err(failed)?;
        // Readable, and run.
        borrow(program, &mut thread, program.mprotect, [mapping, CODE, 5, 0])?;
        let next_text = mapping + CODE + RESULT;
        let signal = 0;
        Ok(Caller {
            program,
            thread,
            memory,
            end,
            after,
            floating_point,
            blocked,
            signal,
            mapping,
            next_text,
        })
    }

    /// Writes a text into the program. Returns its address there.
    pub(super) fn text(&mut self, text: &CStr) -> Result<u64, InjectError> {
        let (place, bytes) = (self.next_text, text.to_bytes_with_nul());
        let end = end_of_text(self.mapping, place, bytes.len() as u64);
        self.next_text = end.ok_or_else(|| self.failed(io::ErrorKind::OutOfMemory.into()))?;
        self.write(place, bytes)?;
        Ok(place)
    }

    /// Reads a text of the program.
    pub(super) fn read_text(&self, address: u64) -> Result<String, InjectError> {
        let mut bytes = [0; 1024];
        let length =
            self.memory.read_at(&mut bytes, address).map_err(|error| self.failed(error))?;
        let text = bytes[..length].split(|byte| *byte == 0).next().unwrap_or(&[]);
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Returns the text that this function of the program returns, such as `dlerror`.
    pub(super) fn message(&mut self, function: u64) -> Result<String, InjectError> {
        match self.call(function, &[])? {
            0 => Ok("for an unknown reason".to_owned()),
            text => self.read_text(text),
        }
    }

    /// Calls a function of the program. Returns its result. The thread is where it was then.
    ///
    /// # Errors
    ///
    /// It does not return in time, or the program ends.
    pub(super) fn call(&mut self, function: u64, arguments: &[u64]) -> Result<u64, InjectError> {
        let state = ThreadState {
            registers: &self.after,
            floating_point: &self.floating_point,
            blocked: self.blocked,
        };
        let frame = Frame::below(self.mapping + MAPPING, &state, self.mapping);
        self.write(frame.address, &frame.bytes)?;
        let mut registers = self.after;
        (registers.rip, registers.rsp, registers.rax) = (function, frame.address, 0);
        // No interrupted system call is started again.
        registers.orig_rax = u64::MAX;
        // The direction flag is clear in every call.
        registers.eflags &= !0x400;
        let places = [
            &mut registers.rdi,
            &mut registers.rsi,
            &mut registers.rdx,
            &mut registers.rcx,
            &mut registers.r8,
            &mut registers.r9,
        ];
        for (place, argument) in places.into_iter().zip(arguments) {
            *place = *argument;
        }
        let begun = self.thread.set_registers(&registers);
        // Only now: what restores the registers restores the signals, too.
        begun
            .and_then(|()| self.thread.set_blocked(BLOCKED))
            .and_then(|_| self.thread.set_options(Options::STOP_AT_CALLS))
            .map_err(|error| self.failed(error))?;
        self.wait_for_return()?;
        let mut result = [0; 8];
        let place = self.mapping + CODE;
        self.memory.read_exact_at(&mut result, place).map_err(|error| self.failed(error))?;
        // The end of the call with which the thread gets its registers.
        self.advance()?;
        Ok(u64::from_le_bytes(result))
    }

    /// Runs the thread to the system call that restores it.
    fn wait_for_return(&mut self) -> Result<(), InjectError> {
        let end_of_code = self.mapping + RETURN.len() as u64;
        loop {
            self.advance()?;
            let registers = self.thread.registers().map_err(|error| self.failed(error))?;
            if registers.rip == end_of_code {
                return Ok(());
            }
        }
    }

    /// Runs the thread to the start or the end of a system call.
    fn advance(&mut self) -> Result<(), InjectError> {
        let pid = self.program.pid;
        loop {
            self.thread.resume_to_call().map_err(|error| self.failed(error))?;
            match self.thread.wait(self.end) {
                Ok(Some(Stop::Call)) => return Ok(()),
                Ok(Some(Stop::Signal(libc::SIGSTOP))) => self.signal = self.thread.take_signal(),
                Ok(Some(Stop::Signal(_))) => {
                    // A fault of the borrowed code: the program has no part in it.
                    self.thread.discard_signal();
                    self.restore();
                    return Err(InjectError::Library("it crashed while it was loaded".into()));
                }
                Ok(Some(Stop::Requested | Stop::Group | Stop::Child)) => {}
                Ok(None) => return Err(InjectError::NoReturn(pid, "dlopen")),
                Err(_) => return Err(ProcessError::NotThere(pid).into()),
            }
        }
    }

    /// Restores the thread from here. Nothing more can be done on errors: the program has ended
    /// then.
    fn restore(&self) {
        let _ = self.thread.set_registers(&self.after);
        let _ = self.thread.set_blocked(self.blocked);
    }

    /// Frees the mapping, and lets the thread go on.
    ///
    /// A mapping that stays does no harm.
    pub(super) fn end(mut self) {
        let arguments = [self.mapping, MAPPING, 0, 0];
        let _ = borrow(self.program, &mut self.thread, self.program.munmap, arguments);
    }

    fn write(&self, place: u64, bytes: &[u8]) -> Result<(), InjectError> {
        self.memory.write_all_at(bytes, place).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> InjectError {
        failed(self.program, error)
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        // A thread that is still in a function comes back by itself.
        if self.thread.stop().is_some() {
            self.thread.set_signal(self.signal);
        }
    }
}

/// Has the thread make a system call by a function of the C library, on its own stack.
fn borrow(
    program: &Program,
    thread: &mut Traced,
    function: u64,
    arguments: [u64; 4],
) -> Result<u64, InjectError> {
    let (pid, arguments) = (program.pid, arguments.map(Some));
    let begun = Borrowed::begin(thread, pid, function, arguments, &program.functions);
    match begun.and_then(Borrowed::call) {
        Ok(returned) => Ok(returned.result),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Err(InjectError::Busy(pid)),
        Err(error) => Err(failed(program, error)),
    }
}

fn failed(program: &Program, error: io::Error) -> InjectError {
    ProcessError::Unreadable(program.pid, error).into()
}

/// Returns the end of a text in the part of the mapping that is for texts, if there is room.
fn end_of_text(mapping: u64, place: u64, length: u64) -> Option<u64> {
    place.checked_add(length).filter(|end| *end <= mapping + CODE + TEXTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fill_their_part_of_the_mapping_and_no_more() {
        let mapping = 0x7000_0000;
        let first = mapping + CODE + RESULT;
        assert_eq!(end_of_text(mapping, first, 100), Some(first + 100));
        assert_eq!(end_of_text(mapping, first, TEXTS - RESULT), Some(mapping + CODE + TEXTS));
        assert_eq!(end_of_text(mapping, first, TEXTS), None);
    }

    #[test]
    fn the_code_keeps_the_result_at_the_start_of_the_texts() {
        let distance = i32::from_le_bytes(RETURN[3..7].try_into().expect("four bytes"));
        assert_eq!(7 + u64::try_from(distance).expect("above the code"), CODE);
    }
}

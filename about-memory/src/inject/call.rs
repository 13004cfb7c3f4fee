//! Has a stopped thread call functions of its process, and leaves it as it was.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use super::error::InjectError;
use super::program::Program;
use crate::other_process::{ProcessError, Registers, Stop, Traced};

/// The bytes of the stack that calls get, and of the texts below it.
const STACK: u64 = 256 * 1024;
const TEXTS: u64 = 16 * 1024;

/// The bytes below a stack pointer that code may use without moving it (the System V ABI).
const RED_ZONE: u64 = 128;

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

/// A stopped thread that calls functions. Dropping it restores its registers and lets it go on.
pub(super) struct Caller<'p> {
    program: &'p Program,
    thread: Traced,
    memory: File,
    end: Instant,
    /// The registers and the blocked signals to restore.
    before: Registers,
    blocked: u64,
    /// The start of the mapped stack, or 0, and the place for the next text.
    stack: u64,
    next_text: u64,
}

impl<'p> Caller<'p> {
    /// Prepares the thread, and maps a stack for it.
    pub(super) fn begin(
        program: &'p Program,
        thread: Traced,
        end: Instant,
    ) -> Result<Self, InjectError> {
        let failed = |error| -> InjectError { ProcessError::Unreadable(program.pid, error).into() };
        let path = format!("/proc/{}/mem", program.pid);
        let memory = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let before = thread.registers().map_err(failed)?;
        let blocked = thread.set_blocked(BLOCKED).map_err(failed)?;
        let mut caller =
            Caller { program, thread, memory, end, before, blocked, stack: 0, next_text: 0 };
        // Readable and writable, private and anonymous.
        let mapped = caller.call(program.mmap, &[0, STACK, 3, 0x22, u64::MAX, 0])?;
        if mapped == u64::MAX {
            return Err(failed(io::ErrorKind::OutOfMemory.into()));
        }
        (caller.stack, caller.next_text) = (mapped, mapped);
        Ok(caller)
    }

    /// Writes a text into the program. Returns its address there.
    pub(super) fn text(&mut self, text: &CStr) -> Result<u64, InjectError> {
        let (place, bytes) = (self.next_text, text.to_bytes_with_nul());
        let end = end_of_text(self.stack, place, bytes.len() as u64);
        self.next_text = end.ok_or_else(|| self.failed(io::ErrorKind::OutOfMemory.into()))?;
        self.memory.write_all_at(bytes, place).map_err(|error| self.failed(error))?;
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

    /// Calls a function of the program. Returns its result.
    ///
    /// # Errors
    ///
    /// It does not return in time, or the program ends.
    pub(super) fn call(&mut self, function: u64, arguments: &[u64]) -> Result<u64, InjectError> {
        let top = match self.stack {
            0 => self.before.rsp.saturating_sub(RED_ZONE),
            stack => stack + STACK,
        };
        let mut registers = self.before;
        registers.rip = function;
        // As after a call: a multiple of 16, less the return address. Address 0 cannot be run, so
        // that the thread stops when the function returns.
        registers.rsp = (top & !15) - 8;
        registers.rax = 0;
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
        let failed =
            |error| -> InjectError { ProcessError::Unreadable(self.program.pid, error).into() };
        self.memory.write_all_at(&[0; 8], registers.rsp).map_err(failed)?;
        self.thread.set_registers(&registers).map_err(failed)?;
        self.thread.resume().map_err(failed)?;
        self.wait_for_return()
    }

    fn wait_for_return(&mut self) -> Result<u64, InjectError> {
        let pid = self.program.pid;
        loop {
            match self.thread.wait(self.end) {
                Ok(Some(Stop::Signal(libc::SIGSEGV))) => {
                    self.thread.discard_signal();
                    let registers = self.thread.registers().map_err(|error| self.failed(error))?;
                    return match registers.rip {
                        0 => Ok(registers.rax),
                        _ => Err(InjectError::Library("it crashed while it was loaded".into())),
                    };
                }
                Ok(Some(Stop::Signal(_))) => {
                    // A fault of the borrowed code: the program has no part in it.
                    self.thread.discard_signal();
                    return Err(InjectError::Library("it crashed while it was loaded".into()));
                }
                Ok(Some(Stop::Requested | Stop::Group | Stop::Child | Stop::Call)) => {
                    self.thread.resume().map_err(|error| self.failed(error))?;
                }
                Ok(None) => return Err(InjectError::NoReturn(pid, "dlopen")),
                Err(_) => return Err(ProcessError::NotThere(pid).into()),
            }
        }
    }

    /// Frees the stack, and lets the thread go on.
    pub(super) fn end(mut self) -> Result<(), InjectError> {
        let stack = std::mem::take(&mut self.stack);
        self.call(self.program.munmap, &[stack, STACK]).map(drop)
    }

    fn failed(&self, error: io::Error) -> InjectError {
        ProcessError::Unreadable(self.program.pid, error).into()
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        // Running after a call that took too long, or stopped. Nothing more can be done on errors:
        // the program has ended then.
        if self.thread.registers().is_err() {
            let soon = Instant::now() + std::time::Duration::from_secs(1);
            let _ = self.thread.interrupt(soon);
        }
        let _ = self.thread.set_registers(&self.before);
        let _ = self.thread.set_blocked(self.blocked);
    }
}

/// Returns the end of a text in the part of the mapped stack that is for texts, if there is room.
fn end_of_text(stack: u64, place: u64, length: u64) -> Option<u64> {
    place.checked_add(length).filter(|end| *end <= stack + TEXTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fill_their_part_of_the_stack_and_no_more() {
        let stack = 0x7000_0000;
        assert_eq!(end_of_text(stack, stack, 100), Some(stack + 100));
        assert_eq!(end_of_text(stack, stack + 100, TEXTS - 100), Some(stack + TEXTS));
        assert_eq!(end_of_text(stack, stack + 100, TEXTS - 99), None);
        assert_eq!(end_of_text(stack, stack, 2 * TEXTS), None);
    }
}

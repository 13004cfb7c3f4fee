//! Has a stopped thread call functions of its process, and leaves it as it was, even if this
//! process is killed meanwhile.
//!
//! The calls have a mapping of their own: code, texts, and a stack. A function returns to the code,
//! which keeps its result and waits to be stopped. If nobody stops it in time, it ends as a signal
//! handler does (`rt_sigreturn(2)`), with a frame that restores all registers of the thread. So
//! the thread needs nobody to go on.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use super::error::InjectError;
use super::program::Program;
use crate::other_process::{
    Borrowed, Frame, ProcessError, Registers, Stop, ThreadState, Traced, resumed,
};

/// The parts of the mapping: the code, the words that it uses with the texts, and the stack.
const CODE: u64 = 4096;
const TEXTS: u64 = 16 * 1024;
const STACK: u64 = 256 * 1024;
const MAPPING: u64 = CODE + TEXTS + STACK;

/// The words of the code: the result, whether it is there, and a time (`struct timespec`).
const WORDS: u64 = 32;

/// The seconds and nanoseconds that a function's end waits for this process.
const PATIENCE: [u64; 2] = [0, 500_000_000];

/// The code to which functions return. Distances are from the end of an instruction.
const AT_RETURN: [u8; 44] = [
    0x48, 0x89, 0x05, 0xf9, 0x0f, 0, 0, // mov %rax, CODE(%rip): the result
    0xc7, 0x05, 0xf7, 0x0f, 0, 0, 1, 0, 0, 0, // movl $1, CODE + 8: it is there
    0x48, 0x8d, 0x3d, 0xf8, 0x0f, 0, 0, // lea CODE + 16, %rdi: the time
    0x31, 0xf6, // xor %esi, %esi
    0x48, 0xc7, 0xc0, 35, 0, 0, 0, // mov $35, %rax: `nanosleep(2)`
    0x0f, 0x05, // syscall
    0x48, 0xc7, 0xc0, 15, 0, 0, 0, // mov $15, %rax: `rt_sigreturn(2)`
    0x0f, 0x05, // syscall
];

/// The pause between two looks at a function's end.
const PAUSE: Duration = Duration::from_micros(100);

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
        memory.write_all_at(&AT_RETURN, mapping).map_err(failed)?;
        // Readable, and run.
        borrow(program, &mut thread, program.mprotect, [mapping, CODE, 5, 0])?;
        let next_text = mapping + CODE + WORDS;
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
        let words = [0, 0, PATIENCE[0], PATIENCE[1]].map(u64::to_le_bytes).concat();
        self.write(self.mapping + CODE, &words)?;
        let begun = self.thread.set_registers(&registers);
        // Only now: what restores the registers restores the signals, too.
        begun
            .and_then(|()| self.thread.set_blocked(BLOCKED))
            .and_then(|_| self.thread.resume())
            .map_err(|error| self.failed(error))?;
        let result = self.wait_for_result()?;
        self.take_back()?;
        Ok(result)
    }

    /// Waits until the function has returned. Returns its result.
    fn wait_for_result(&mut self) -> Result<u64, InjectError> {
        loop {
            let mut words = [0; 16];
            let place = self.mapping + CODE;
            self.memory.read_exact_at(&mut words, place).map_err(|error| self.failed(error))?;
            let [result, is_there] = [&words[..8], &words[8..]]
                .map(|word| word.try_into().map_or(0, u64::from_le_bytes));
            if is_there != 0 {
                return Ok(result);
            }
            if Instant::now() >= self.end {
                return Err(InjectError::NoReturn(self.program.pid, "dlopen"));
            }
            // A look without waiting.
            if let Some(stop) = self.wait(Instant::now())? {
                self.after_stop(stop)?;
            } else {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Stops the thread where it waits after a function's end, and restores it.
    fn take_back(&mut self) -> Result<(), InjectError> {
        self.thread.request_stop().map_err(|error| self.failed(error))?;
        loop {
            let late = InjectError::NoReturn(self.program.pid, "dlopen");
            let stop = self.wait(self.end)?.ok_or(late)?;
            if stop == Stop::Requested {
                break;
            }
            self.after_stop(stop)?;
        }
        let registers = self.thread.registers().map_err(|error| self.failed(error))?;
        if !(self.mapping..self.mapping + CODE).contains(&registers.rip) {
            let why = "about-memory had no processor for half a second; try again";
            return Err(InjectError::Library(why.into()));
        }
        self.restore();
        Ok(())
    }

    fn wait(&mut self, end: Instant) -> Result<Option<Stop>, InjectError> {
        let pid = self.program.pid;
        self.thread.wait(end).map_err(|_| ProcessError::NotThere(pid).into())
    }

    /// Lets the thread go on after a stop that is not a function's end.
    ///
    /// # Errors
    ///
    /// The function has crashed.
    fn after_stop(&mut self, stop: Stop) -> Result<(), InjectError> {
        match stop {
            Stop::Signal(libc::SIGSTOP) => self.signal = self.thread.take_signal(),
            Stop::Signal(_) => {
                // A fault of the borrowed code: the program has no part in it.
                self.thread.discard_signal();
                self.restore();
                return Err(InjectError::Library("it crashed while it was loaded".into()));
            }
            Stop::Requested | Stop::Group | Stop::Child | Stop::Call => {}
        }
        self.thread.resume().map_err(|error| self.failed(error))
    }

    /// Restores the thread from here. Nothing more can be done on errors: the program has ended
    /// then. If this process ends in between, the frame restores the registers.
    fn restore(&self) {
        let _ = self.thread.set_blocked(self.blocked);
        let _ = self.thread.set_registers(&self.after);
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
        let first = mapping + CODE + WORDS;
        assert_eq!(end_of_text(mapping, first, 100), Some(first + 100));
        assert_eq!(end_of_text(mapping, first, TEXTS - WORDS), Some(mapping + CODE + TEXTS));
        assert_eq!(end_of_text(mapping, first, TEXTS), None);
    }

    #[test]
    fn the_code_uses_its_own_words() {
        // The end of an instruction, and the place of its distance.
        for (end, distance, word) in [(7, 3..7, 0), (17, 9..13, 8), (24, 20..24, 16)] {
            let distance = i32::from_le_bytes(AT_RETURN[distance].try_into().expect("four bytes"));
            assert_eq!(end + u64::try_from(distance).expect("above the code"), CODE + word);
        }
    }
}

//! Has a stopped thread load a library and call its function, and leaves it as it was, even if
//! this process is killed meanwhile.
//!
//! The code that does it has a mapping of its own, with texts and a stack. When it is done, it
//! waits to be stopped. If nobody stops it in time, it ends as a signal handler does
//! (`rt_sigreturn(2)`), with a frame that restores all registers of the thread. So the thread needs
//! nobody to go on.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use super::error::InjectError;
use super::program::Program;
use crate::glibc_heap::Sum;
use crate::other_process::{
    Borrowed, Frame, ProcessError, Registers, Stop, ThreadState, Traced, resumed,
};

/// The parts of the mapping: the code, the words that it uses with the texts, and the stack.
const CODE: u64 = 4096;
const TEXTS: u64 = 16 * 1024;
const STACK: u64 = 256 * 1024;
const MAPPING: u64 = CODE + TEXTS + STACK;

/// The bytes of the code's words. In this order: the result; whether it is there, and whether the
/// function must not be called any more (4 bytes each); a time (`struct timespec`); `dlopen` and
/// the library's path; `dlsym` and the function's name; the function's arguments; `dlerror`;
/// whether the linker has failed.
const WORDS: usize = 13 * 8;

/// The place of the second half of the second word.
const GIVEN_UP: u64 = 12;

/// The seconds and nanoseconds that the code waits for this process at its end.
const PATIENCE: [u64; 2] = [0, 500_000_000];

/// The code. The words are at `%rbx`, which functions keep. Unlike `nanosleep`, `ppoll` leaves what
/// the kernel knows of an interrupted wait of the program's own, which goes on afterwards.
#[rustfmt::skip]
const PROGRAM: [u8; 98] = [
    0x48, 0x8d, 0x1d, 0xf9, 0x0f, 0, 0, // lea CODE(%rip), %rbx
    0x48, 0x8b, 0x7b, 40, // mov 40(%rbx), %rdi
    0xbe, 2, 0, 0, 0, // mov $RTLD_NOW, %esi: an incomplete library fails here
    0xff, 0x53, 32, // call *32(%rbx): `dlopen`
    0x48, 0x85, 0xc0, // test %rax, %rax
    0x74, 37, // jz failed
    0x48, 0x89, 0xc7, // mov %rax, %rdi
    0x48, 0x8b, 0x73, 56, // mov 56(%rbx), %rsi
    0xff, 0x53, 48, // call *48(%rbx): `dlsym`
    0x48, 0x85, 0xc0, // test %rax, %rax
    0x74, 22, // jz failed
    0x83, 0x7b, 12, 0, // cmpl $0, 12(%rbx)
    0x75, 22, // jne done
    0x48, 0x8b, 0x7b, 64, // mov 64(%rbx), %rdi
    0x48, 0x8b, 0x73, 72, // mov 72(%rbx), %rsi
    0x48, 0x8b, 0x53, 80, // mov 80(%rbx), %rdx
    0xff, 0xd0, // call *%rax
    0xeb, 6, // jmp done
    // failed:
    0xff, 0x43, 96, // incl 96(%rbx)
    0xff, 0x53, 88, // call *88(%rbx): `dlerror`
    // done:
    0x48, 0x89, 0x03, // mov %rax, (%rbx)
    0xff, 0x43, 8, // incl 8(%rbx): the result is there
    0x48, 0x8d, 0x53, 16, // lea 16(%rbx), %rdx
    0x31, 0xff, // xor %edi, %edi
    0x31, 0xf6, // xor %esi, %esi
    0x45, 0x31, 0xd2, // xor %r10d, %r10d
    0xb8, 0x0f, 0x01, 0, 0, // mov $271, %eax: `ppoll(2)` of nothing
    0x0f, 0x05, // syscall
    0xb8, 15, 0, 0, 0, // mov $15, %eax: `rt_sigreturn(2)`
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

/// A library to load, and a call of its function.
pub(super) struct Load<'a> {
    /// The library's path in the program.
    pub(super) path: &'a CStr,
    /// The function of the library.
    pub(super) function: &'a CStr,
    /// The words that the function takes, and the sum of the blocks that the program has.
    pub(super) words: &'a CStr,
    pub(super) earlier: Sum,
}

/// The result of the code.
struct Outcome {
    result: u64,
    has_linker_failed: bool,
}

/// A stopped thread that loads a library. Dropping it lets the thread go on: from where it was, or
/// with what it does, and then from there.
pub(super) struct Loader<'p> {
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

impl<'p> Loader<'p> {
    /// Prepares the thread: maps the memory that the code needs.
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
        memory.write_all_at(&PROGRAM, mapping).map_err(failed)?;
        // Readable, and run.
        borrow(program, &mut thread, program.mprotect, [mapping, CODE, 5, 0])?;
        let next_text = mapping + CODE + WORDS as u64;
        let signal = 0;
        Ok(Loader {
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

    /// Has the thread load the library and call its function.
    ///
    /// # Errors
    ///
    /// The library cannot be loaded, or refuses; or neither is known in time, or the program ends.
    pub(super) fn load(mut self, load: &Load<'_>) -> Result<(), InjectError> {
        self.start(load)?;
        let Outcome { result, has_linker_failed } = self.wait_for_outcome()?;
        let text = if result == 0 { None } else { Some(self.read_text(result)?) };
        if self.take_back()? {
            // A mapping that stays does no harm.
            let arguments = [self.mapping, MAPPING, 0, 0];
            let _ = borrow(self.program, &mut self.thread, self.program.munmap, arguments);
        }
        match text {
            why if has_linker_failed => {
                Err(InjectError::Library(why.unwrap_or_else(|| "for an unknown reason".into())))
            }
            Some(why) => Err(InjectError::Refused(self.program.pid, why)),
            None => Ok(()),
        }
    }

    /// Lets the thread run the code.
    fn start(&mut self, load: &Load<'_>) -> Result<(), InjectError> {
        let [path, function, words] =
            [self.text(load.path)?, self.text(load.function)?, self.text(load.words)?];
        let (program, earlier) = (self.program, load.earlier);
        #[rustfmt::skip]
        let words: [u64; WORDS / 8] = [
            0, 0, PATIENCE[0], PATIENCE[1],
            program.dlopen, path, program.dlsym, function,
            words, earlier.bytes, earlier.blocks, program.dlerror, 0,
        ];
        self.write(self.mapping + CODE, &words.map(u64::to_le_bytes).concat())?;
        let state = ThreadState {
            registers: &self.after,
            floating_point: &self.floating_point,
            blocked: self.blocked,
        };
        let frame = Frame::below(self.mapping + MAPPING, &state, self.mapping);
        self.write(frame.address, &frame.bytes)?;
        let mut registers = self.after;
        // As if the code had been returned to.
        (registers.rip, registers.rsp) = (self.mapping, frame.address + 8);
        // No interrupted system call is started again.
        registers.orig_rax = u64::MAX;
        // The direction flag is clear in every call.
        registers.eflags &= !0x400;
        let begun = self.thread.set_registers(&registers);
        // Only now: what restores the registers restores the signals, too.
        begun
            .and_then(|()| self.thread.set_blocked(BLOCKED))
            .and_then(|_| self.thread.resume())
            .map_err(|error| self.failed(error))
    }

    /// Waits until the code has done its work. After the time, it will not call the function any
    /// more.
    fn wait_for_outcome(&mut self) -> Result<Outcome, InjectError> {
        loop {
            let mut words = [0; WORDS];
            let place = self.mapping + CODE;
            self.memory.read_exact_at(&mut words, place).map_err(|error| self.failed(error))?;
            let number = |at: usize| words[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
            if number(8) != 0 {
                let result = u64::from(number(0)) | u64::from(number(4)) << 32;
                return Ok(Outcome { result, has_linker_failed: number(96) != 0 });
            }
            if Instant::now() >= self.end {
                self.write(place + GIVEN_UP, &1_u32.to_le_bytes())?;
                return Err(InjectError::NoReturn(self.program.pid));
            }
            // A look without waiting.
            if let Some(stop) = self.wait(Instant::now())? {
                self.after_stop(stop)?;
            } else {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Stops the thread where it waits after the code's work, and restores it. Returns `false` if
    /// it has gone on by itself.
    fn take_back(&mut self) -> Result<bool, InjectError> {
        self.thread.request_stop().map_err(|error| self.failed(error))?;
        loop {
            let late = InjectError::NoReturn(self.program.pid);
            let stop = self.wait(self.end)?.ok_or(late)?;
            if stop == Stop::Requested {
                break;
            }
            self.after_stop(stop)?;
        }
        let registers = self.thread.registers().map_err(|error| self.failed(error))?;
        let is_here = (self.mapping..self.mapping + CODE).contains(&registers.rip);
        if is_here {
            self.restore();
        }
        Ok(is_here)
    }

    fn wait(&mut self, end: Instant) -> Result<Option<Stop>, InjectError> {
        let pid = self.program.pid;
        self.thread.wait(end).map_err(|_| ProcessError::NotThere(pid).into())
    }

    /// Lets the thread go on after a stop that is not the code's end.
    ///
    /// # Errors
    ///
    /// The code has crashed.
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

    /// Writes a text into the program. Returns its address there.
    fn text(&mut self, text: &CStr) -> Result<u64, InjectError> {
        let (place, bytes) = (self.next_text, text.to_bytes_with_nul());
        let end = end_of_text(self.mapping, place, bytes.len() as u64);
        self.next_text = end.ok_or_else(|| self.failed(io::ErrorKind::OutOfMemory.into()))?;
        self.write(place, bytes)?;
        Ok(place)
    }

    /// Reads a text of the program.
    fn read_text(&self, address: u64) -> Result<String, InjectError> {
        let mut bytes = [0; 1024];
        let length =
            self.memory.read_at(&mut bytes, address).map_err(|error| self.failed(error))?;
        let text = bytes[..length].split(|byte| *byte == 0).next().unwrap_or(&[]);
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn write(&self, place: u64, bytes: &[u8]) -> Result<(), InjectError> {
        self.memory.write_all_at(bytes, place).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> InjectError {
        failed(self.program, error)
    }
}

impl Drop for Loader<'_> {
    fn drop(&mut self) {
        // A thread that still runs the code comes back by itself.
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
        let words = WORDS as u64;
        let first = mapping + CODE + words;
        assert_eq!(end_of_text(mapping, first, 100), Some(first + 100));
        assert_eq!(end_of_text(mapping, first, TEXTS - words), Some(mapping + CODE + TEXTS));
        assert_eq!(end_of_text(mapping, first, TEXTS), None);
    }

    #[test]
    fn the_code_finds_its_words_and_its_ends() {
        let distance = i32::from_le_bytes(PROGRAM[3..7].try_into().expect("four bytes"));
        assert_eq!(7 + u64::try_from(distance).expect("above the code"), CODE);
        // `incl 96(%rbx)`, and the result's `mov`.
        let (failed, done) = (61, 67);
        assert_eq!(PROGRAM[failed..failed + 3], [0xff, 0x43, 96]);
        assert_eq!(PROGRAM[done..done + 3], [0x48, 0x89, 0x03]);
        // Jumps: the place of the distance, which counts from behind it.
        for (place, target) in [(23, failed), (38, failed), (44, done), (60, done)] {
            assert_eq!(place + 1 + usize::from(PROGRAM[place]), target, "at {place}");
        }
    }
}

//! Copies the heap of a running process, while its threads or a child of it are stopped.

use std::fs::{self, File};
use std::ops::Range;

use super::collect::{Extent, Memory, Pause, collect};
use super::frames;
use super::image::Image;
use super::mapped::Search;
use super::threads::ThreadState;
use crate::other_process::{
    Functions, HeldSignals, Mapping, ProcessError, Registers, State, Stopped, copy_memory, file_of,
    is_of_go, mappings, state,
};

/// The bytes of writable memory from which on a child is made: less is copied in the time that
/// this takes.
const MUCH: u64 = 16 << 20;

/// A copy, and how it was made.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) image: Image,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) pause: Pause,
}

/// Copies the heap of the process.
///
/// # Errors
///
/// The process has ended, or may not be traced.
pub(crate) fn copy(pid: u32, extent: Extent) -> Result<Copied, ProcessError> {
    let State { is_filtered, .. } = state(pid)?;
    // A filter may end the process if it makes a child.
    let functions = if is_filtered { None } else { functions_of(pid)? };
    // Neither a borrowed thread nor a child must be left behind.
    let _held = HeldSignals::hold();
    let mut process = Stopped::stop(pid)?;
    let mappings = mappings(pid)?;
    let threads = process.registers().into_iter();
    let threads: Vec<_> = threads.map(|(tid, registers)| thread_state(tid, &registers)).collect();
    let child = functions.and_then(|functions| process.child(&functions));
    let (mut image, time) = match &child {
        Some(child) => {
            let time = process.resume();
            (collect(&MemoryOf(child.pid()), &mappings, &threads, extent), time)
        }
        None => (collect(&MemoryOf(pid), &mappings, &threads, extent), process.resume()),
    };
    for thread in &mut image.threads {
        thread.name = name_of(pid, thread.number);
    }
    frames::add(&mut image, &mappings, &|mapping| file_of(pid, mapping));
    Ok(Copied { image, mappings, pause: Pause { time, is_by_child: child.is_some() } })
}

/// Returns the functions with which a process makes a child; `None` without glibc, or if it has so
/// little memory that it is copied at once.
fn functions_of(pid: u32) -> Result<Option<Functions>, ProcessError> {
    let mappings = mappings(pid)?;
    let private = mappings.iter().filter(|mapping| mapping.is_writable && mapping.inode == 0);
    let bytes: u64 = private.map(|mapping| mapping.range.end - mapping.range.start).sum();
    // The stacks of Go's threads are too small to be borrowed.
    let is_go = || File::open(format!("/proc/{pid}/exe")).is_ok_and(is_of_go);
    if bytes < MUCH || is_go() {
        return Ok(None);
    }
    Ok(Functions::of(pid, &mappings))
}

/// The memory of a stopped process.
struct MemoryOf(u32);

impl Memory for MemoryOf {
    fn read(&self, range: Range<u64>) -> Vec<u8> {
        let Ok(length) = usize::try_from(range.end - range.start) else { return Vec::new() };
        copy_memory(self.0, range.start, length)
    }

    fn search(&self) -> Search {
        Search::Near
    }
}

/// Takes what is needed of a thread's registers.
pub(super) fn thread_state(number: u32, registers: &Registers) -> ThreadState {
    ThreadState {
        number,
        name: None,
        thread_pointer: registers.fs_base,
        instruction_pointer: registers.rip,
        registers: [
            registers.rax,
            registers.rdx,
            registers.rcx,
            registers.rbx,
            registers.rsi,
            registers.rdi,
            registers.rbp,
            registers.rsp,
            registers.r8,
            registers.r9,
            registers.r10,
            registers.r11,
            registers.r12,
            registers.r13,
            registers.r14,
            registers.r15,
        ],
    }
}

/// Returns the name of a thread: proc(5).
fn name_of(pid: u32, thread: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm")).ok()?;
    Some(name.trim_end_matches('\n').to_owned())
}

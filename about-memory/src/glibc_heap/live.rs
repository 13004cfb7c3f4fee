//! Copies the heap of a running process, while its threads are stopped.

use std::ops::Range;
use std::time::Duration;

use super::collect::{Extent, Memory, ThreadState, collect};
use super::image::Image;
use super::mapped::Search;
use crate::other_process::{Mapping, ProcessError, Registers, Stopped, mappings, state};

/// A copy, and how long the process was stopped for it.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) image: Image,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) stopped: Duration,
}

/// Copies the heap of the process.
///
/// # Errors
///
/// The process has ended, or may not be traced.
pub(crate) fn copy(pid: u32, extent: Extent) -> Result<Copied, ProcessError> {
    state(pid)?;
    let process = Stopped::stop(pid)?;
    let mappings = mappings(pid)?;
    let threads = process.registers().into_iter();
    let threads: Vec<_> = threads.map(|(tid, registers)| thread_state(tid, &registers)).collect();
    let image = collect(&process, &mappings, &threads, extent);
    Ok(Copied { image, mappings, stopped: process.resume() })
}

impl Memory for Stopped {
    fn read(&self, range: Range<u64>) -> Vec<u8> {
        let Ok(length) = usize::try_from(range.end - range.start) else { return Vec::new() };
        Stopped::read(self, range.start, length).unwrap_or_default()
    }

    fn search(&self) -> Search {
        Search::Near
    }
}

/// Takes what is needed of a thread's registers.
pub(super) fn thread_state(number: u32, registers: &Registers) -> ThreadState {
    ThreadState {
        number,
        stack_pointer: registers.rsp,
        thread_pointer: registers.fs_base,
        registers: vec![
            registers.rax,
            registers.rbx,
            registers.rcx,
            registers.rdx,
            registers.rsi,
            registers.rdi,
            registers.rbp,
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

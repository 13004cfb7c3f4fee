//! The threads of a process: their registers, and the frames of their stacks. Registers have their
//! numbers in DWARF (System V ABI for x86-64, figure 3.36).

use std::ops::Range;

/// The number of general registers.
pub(super) const REGISTERS: usize = 16;

pub(super) const FRAME_POINTER: u16 = 6;
pub(super) const STACK_POINTER: u16 = 7;

/// The registers that a function leaves to its caller as they were: `rbx`, `rbp`, `r12` to `r15`.
pub(super) const KEPT: [u16; 6] = [3, FRAME_POINTER, 12, 13, 14, 15];

/// The value of a register, and the address at which a called function saved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    pub(crate) value: u64,
    pub(crate) place: Option<u64>,
}

/// The registers that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers([Option<Saved>; REGISTERS]);

impl Registers {
    pub(super) fn of_thread(values: &[u64; REGISTERS]) -> Self {
        Self(values.map(|value| Some(Saved { value, place: None })))
    }

    pub(super) fn get(&self, number: u16) -> Option<Saved> {
        self.0.get(usize::from(number)).copied().flatten()
    }

    pub(super) fn value(&self, number: u16) -> Option<u64> {
        Some(self.get(number)?.value)
    }

    pub(super) fn set(&mut self, number: u16, saved: Saved) {
        if let Some(known) = self.0.get_mut(usize::from(number)) {
            *known = Some(saved);
        }
    }

    /// Returns the numbers and values of the known ones.
    pub(super) fn known(&self) -> impl Iterator<Item = (u16, Saved)> {
        (0..).zip(self.0).filter_map(|(number, saved)| Some((number, saved?)))
    }
}

/// The bytes below a stack pointer that code may use (the System V ABI).
pub(super) const RED_ZONE: u64 = 128;

/// The state of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadState {
    pub(crate) number: u32,
    pub(crate) name: Option<String>,
    pub(crate) thread_pointer: u64,
    pub(crate) instruction_pointer: u64,
    /// The general registers, by their numbers in DWARF.
    pub(crate) registers: [u64; REGISTERS],
}

impl ThreadState {
    pub(super) fn stack_pointer(&self) -> u64 {
        self.registers[usize::from(STACK_POINTER)]
    }
}

/// A frame of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The number of the thread.
    pub(crate) thread: u32,
    /// The path of the module that has the code.
    pub(crate) module: String,
    /// The address behind the call, or one byte behind the start of the current instruction, in the
    /// module's file.
    pub(crate) offset: u64,
    /// Its addresses on the stack.
    pub(crate) range: Range<u64>,
    pub(crate) registers: Registers,
    /// The thread began with it.
    pub(crate) is_first: bool,
}

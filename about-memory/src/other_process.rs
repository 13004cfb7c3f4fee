//! Other processes, seen through the kernel: their state, mappings, threads and memory.

mod maps;
mod c_library;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod running;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use c_library::instead_of_glibc;
pub(crate) use c_library::{GO, is_of_go};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use maps::mappings;
#[cfg(test)]
pub(crate) use maps::parse;
pub(crate) use maps::{Mapping, is_c_library};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use running::{
    Borrowed, Frame, Functions, HeldSignals, ProcessError, Registers, State, Stop, Stopped,
    ThreadState, Traced, copy_memory, exported, file_of, find_text, resumed, state, threads,
};

//! System calls. No other file of the room calls the operating system, apart from `signals`.
//!
//! `environment` reads variables, `memory` maps pages, `words` reads single words, `stacks` finds
//! threads and their stacks, `modules` lists loaded code, `process` has clocks and resident
//! memory, `ticks` has a cheaper clock, `futex` waits, and `errno` keeps that variable.

#[cfg(not(loom))]
mod environment;
mod memory;
mod words;
mod stacks;
mod modules;
mod process;
#[cfg(not(loom))]
mod ticks;
mod futex;
mod errno;

#[cfg(not(loom))]
pub(crate) use environment::{temporary_folder, variable, variable_in_hook};
pub use errno::keeping_errno;
pub(crate) use futex::Futex;
#[cfg(test)]
pub(crate) use memory::shortage;
pub(crate) use memory::{
    ADDRESS_BITS, ADDRESS_END, HUGE_PAGE, PAGE, grow_mapping, map, map_at, map_huge, prefetch,
    prefetch_to_write, unmap, untagged,
};
pub(crate) use modules::{
    Module, allocate_in_c_library, build_id, module_of, module_path_of, modules, own_module_path,
    program_note,
};
pub(crate) use process::{monotonic, resident_bytes, uptime};
pub(crate) use stacks::{
    StackBounds, above_main_frames, is_thread, note_descriptor, note_main_stack, stack_bounds,
    thread_id, thread_name, with_own_thread_name,
};
#[cfg(not(loom))]
pub(crate) use ticks::{TickClock, ticks};
pub(crate) use words::{
    differing_bits, is_readable, read_word_checked, read_words_checked, word_at, word_from,
};

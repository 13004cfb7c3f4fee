//! The operating system. No other file of the crate differs between systems: `cargo xtask tidy
//! systems`.
//!
//! `system` is the trait that each system implements: `linux` and `macos`. The other files are for
//! all of them: `environment` reads variables, `memory` maps pages, `words` reads single words,
//! `stacks` has the bounds of stacks, `modules` the loaded code, `mach_o` reads its headers on
//! macOS, `ticks` is a cheap clock, `futex` waits, and `errno` keeps that variable.

mod system;
#[cfg(not(loom))]
mod environment;
mod memory;
mod words;
mod stacks;
mod modules;
#[cfg(any(target_os = "macos", test))]
mod mach_o;
#[cfg(not(loom))]
mod ticks;
mod futex;
mod errno;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
use linux::Linux as Current;
#[cfg(target_os = "macos")]
use macos::MacOs as Current;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("DMD runs on Linux and macOS; memreport measures and reports elsewhere, too");

#[cfg(not(loom))]
pub(crate) use environment::{variable, variable_in_hook};
pub use errno::keeping_errno;
pub(crate) use futex::Futex;
#[cfg(test)]
pub(crate) use memory::shortage;
pub(crate) use memory::{
    ADDRESS_BITS, ADDRESS_END, HUGE_PAGE, PAGE, are_resident, end_writes_past_caches, grow_mapping,
    make_huge_page, map, map_aligned, map_at, map_huge, map_sparse, prefer_huge_pages,
    prefetch_to_write, unmap, write_past_caches,
};
pub(crate) use memreport::__private::untagged;
pub(crate) use modules::{
    Module, TRACKER_NOTE, UnwindModule, allocate_in_c_library, build_id, module_path_of,
    own_module_path,
};
pub(crate) use stacks::{StackBounds, UsedStack, UsedStacks};
pub(crate) use system::{
    MAX_RANGES, Piece, above_main_frames, at_quick_exit, each_unwind_module, find_module,
    fingerprint, fork, function_start, is_thread, keep_marks, module_of, modules, monotonic,
    note_descriptor, note_main_stack, open_program, own_thread_name, pipe, program_note,
    read_ranges_checked, read_words_checked, resident_bytes, stack_bounds, thread_handle,
    thread_id, thread_name, uptime, used_stacks, write_pieces,
};
#[cfg(not(loom))]
pub(crate) use ticks::{TickClock, ticks};
pub(crate) use words::{Comparison, is_readable, opaque, predicted, read_word_checked, word_at};
pub(crate) use words::{return_address_beside, return_address_from, word_beside, word_from};

/// True if loaded modules have unwind information that the tracker reads.
pub(crate) const HAS_UNWIND_INFO: bool = <Current as system::System>::HAS_UNWIND_INFO;

/// True if the function that starts a thread has no unwind information, and the reference unwinder
/// leaves it out.
pub(crate) const THREADS_START_UNSEEN: bool = <Current as system::System>::THREADS_START_UNSEEN;

/// The flags of `waitpid` for the child of [`fork`].
pub(crate) const WAIT: std::ffi::c_int = <Current as system::System>::WAIT;

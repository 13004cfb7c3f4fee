//! The trait that each operating system implements, and its functions for the system of this build.
//!
//! A system that lacks one of them does not compile. `Linux` and `MacOs` are types without a size
//! and without values, so a call is one of an ordinary function.
#![expect(unsafe_code, reason = "declares functions with contracts")]

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::Current;
use super::modules::{FoundModule, Module, UnwindModule};
use super::stacks::{StackBounds, ThreadName, UsedStacks};

/// A piece of memory to write, with the layout of C's `iovec`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Piece {
    pub(crate) start: usize,
    pub(crate) length: usize,
}

const _: () = assert!(size_of::<Piece>() == size_of::<libc::iovec>());

/// The most ranges of one call of [`read_ranges_checked`].
pub(crate) const MAX_RANGES: usize = 64;

/// Defines the trait: items for this folder alone, then functions that become functions of `sys`.
macro_rules! system {
    ({ $($within:tt)* } $($(#[$about:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// An operating system that the tracker runs on.
        pub(super) trait System {
            $($within)*
            $($(#[$about])* fn $name($($argument: $type),*) $(-> $result)?;)*
        }
        $($(#[$about])*
        #[inline(always)]
        pub(crate) fn $name($($argument: $type),*) $(-> $result)? {
            <Current as System>::$name($($argument),*)
        })*
    };
}

system! {
    {
        /// The smallest size of a page in bytes. Used for rounding only.
        const PAGE: usize;
        /// The bits of an address of a process.
        const ADDRESS_BITS: u32;
        /// The bits of a return address in memory that are the address. The others may be a
        /// signature of it.
        const RETURN_ADDRESS: usize;
        /// True if the function that starts a thread has no unwind information, and the reference
        /// unwinder leaves it out.
        const THREADS_START_UNSEEN: bool;
        /// True if loaded modules have unwind information that the tracker reads.
        const HAS_UNWIND_INFO: bool;
        /// The flag of `mmap` by which the kernel reserves nothing for the pages.
        const NO_RESERVE: c_int;
        /// The flag of `mmap` by which an address is taken if it is free; 0 if the address is a
        /// hint.
        const IF_FREE: c_int;
        /// The flags of `waitpid` for the child of [`System::fork`].
        const WAIT: c_int;

        /// Returns the place of this thread's `errno`.
        fn errno() -> *mut c_int;

        /// Grows a mapping, and moves it if its neighbours are in the way. The new part is zeroed.
        ///
        /// # Safety
        ///
        /// `start` is the start of a mapping with this many bytes. If it moves, the old address is
        /// no longer used.
        unsafe fn grow(start: NonNull<u8>, bytes: usize, longer: usize) -> Option<NonNull<u8>>;

        /// Advises the kernel to back a mapping with huge pages. If it refuses, they stay small.
        fn prefer_huge_pages(pages: NonNull<u8>, bytes: usize);

        /// Makes huge pages of the small ones from this address on. If the kernel refuses, they
        /// stay small.
        fn make_huge_pages(pages: NonNull<u8>, bytes: usize);

        /// Waits until the word is another one than `seen`, at most for this time. It may return
        /// early, and change `errno`. In hooks: one system call, no memory, no lock.
        #[cfg(not(loom))]
        fn wait_for_change(word: &AtomicU32, seen: u32, at_most: Duration);

        /// Wakes all threads that wait for a change of the word. It may change `errno`. In hooks:
        /// as [`System::wait_for_change`].
        #[cfg(not(loom))]
        fn wake_all(word: &AtomicU32);

        /// Returns whether the processor's counter runs at a constant rate, and in step on all
        /// processors.
        fn trusts_counter() -> bool;

        /// Returns whether this processor has a tag for each 16 bytes of memory, which an address
        /// must have too in order to read them. In hooks: no system call.
        #[cfg(target_arch = "aarch64")]
        fn tags_memory() -> bool;

        /// Forks a child that has this thread alone. Returns 0 in the child, and -1 on failure.
        ///
        /// # Safety
        ///
        /// The child calls only what a signal handler may.
        unsafe fn fork() -> libc::pid_t;
    }

    /// Reads words from an aligned address. Returns how many words are readable. The kernel reads
    /// them, so an unmapped address causes no fault. In hooks: system calls, no memory, no lock. On
    /// macOS it is not for signal handlers.
    fn read_words_checked(address: usize, words: &mut [usize]) -> usize;

    /// Reads the words of at most `MAX_RANGES` ranges of addresses, one behind the other, and
    /// returns how many were read until one was not readable. On Linux it is one call.
    fn read_ranges_checked(ranges: &[Range<usize>], words: &mut [usize]) -> usize;

    /// Returns the kernel's number of this thread; 0 if it does not tell. In hooks: at most one
    /// system call.
    fn thread_id() -> u32;

    /// Returns whether a thread of this process has this number of the kernel's. `true` if the
    /// system does not tell. In hooks: one system call, and `errno` is kept.
    fn is_thread(id: u32) -> bool;

    /// Returns the name of this thread. In hooks: at most one system call, no memory.
    fn own_thread_name() -> ThreadName;

    /// Returns the name of a thread of this process, if the thread is alive. Not for hooks.
    fn thread_name(id: u32) -> Option<String>;

    /// Returns this thread's `pthread_t`. In hooks: no system call, no memory.
    fn thread_handle() -> usize;

    /// Returns the used stacks of all threads: of this one, from its stack pointer on. None if the
    /// system does not tell. Not for hooks.
    fn used_stacks(stack_pointer: usize) -> UsedStacks;

    /// Returns an address above all frames of the main thread, from the address of the arguments
    /// that functions before `main` are given.
    fn above_main_frames(arguments: usize) -> usize;

    /// Stores the bounds of the main thread's stack, if a hook cannot find them. Call it on that
    /// thread, before `main`.
    fn note_main_stack(above_all_frames: usize);

    /// Prepares the search for the bounds of other threads' stacks. Call it on the main thread,
    /// outside hooks.
    fn note_descriptor();

    /// Returns the bounds of this thread's stack. In hooks it takes no lock and allocates nothing,
    /// with the exceptions that a system states.
    fn stack_bounds() -> Option<StackBounds>;

    /// Returns the loaded modules, the program first. It may take the linker's lock: never call it
    /// from a hook.
    fn modules() -> Vec<Module>;

    /// Returns the range of addresses of the module that contains this code. Like [`modules`], it
    /// is not for hooks.
    fn module_of(code: usize) -> Option<(usize, usize)>;

    /// Returns the description of the program's own note of this name and kind, which is in memory
    /// for as long as the program runs; `None` on systems without such notes. Hooks may call it.
    fn program_note(name: [u8; 12], kind: u32) -> Option<&'static [u8]>;

    /// Keeps the marks of programs with DMD: a section, by which `about-memory run` recognises the
    /// file of one, and a note for [`program_note`], where there are notes.
    fn keep_marks();

    /// Opens the program's own file, which may have another name by now.
    fn open_program() -> io::Result<File>;

    /// Calls `visit` with each module that is loaded and has unwind information, the program first,
    /// and prepares [`find_module`] and [`function_start`]. It may take the linker's lock: never
    /// call it from a hook.
    fn each_unwind_module(visit: &mut dyn FnMut(UnwindModule));

    /// Returns the module of this code, which is on this thread's stack. In hooks: no lock, no
    /// memory.
    fn find_module(code: usize) -> Option<FoundModule>;

    /// Returns the fingerprint of the module of this code. In hooks: no lock, no memory.
    fn fingerprint(code: usize) -> Option<u64>;

    /// Returns the start of the function that contains this code, if the system lists functions
    /// elsewhere than in unwind information. In hooks: no lock, no memory.
    fn function_start(code: usize) -> Option<usize>;

    /// Returns the monotonic clock in nanoseconds. In hooks: no lock, and usually no system call.
    fn monotonic() -> u64;

    /// Returns the time since the process started. Not for hooks.
    fn uptime() -> Duration;

    /// Returns the resident memory of this process in bytes. Not for hooks.
    fn resident_bytes() -> Option<u64>;

    /// Writes pieces of memory to a file from a position on, and returns the number of bytes; on an
    /// error it returns -1, and `errno` is set. The kernel checks all addresses. No sanitizer does,
    /// because the pieces may include bytes between blocks.
    fn write_pieces(descriptor: c_int, pieces: &[Piece], position: u64) -> i64;

    /// Opens a pipe that programs started from this one do not inherit, and that never waits.
    fn pipe() -> io::Result<[OwnedFd; 2]>;

    /// Runs `function` when the process ends by `quick_exit`, where there is one.
    fn at_quick_exit(function: extern "C" fn());
}

/// Forks a child that has this thread alone. Returns 0 in the child, and -1 on failure.
///
/// # Safety
///
/// The child calls only what a signal handler may.
pub(crate) unsafe fn fork() -> libc::pid_t {
    // SAFETY: this function has the same contract.
    unsafe { Current::fork() }
}

//! macOS, on Apple's processors and x86-64. Compiled, not run: nobody has tried it on a machine.
//!
//! Statements about functions of the system are by their documentation and Apple's published
//! sources. Hooks call those that are marked so in `system`; none of them allocates or takes a lock
//! of the process. But the first hook of a thread does, in each image: the dynamic linker then
//! allocates the thread's thread-local values by `malloc`, which the tracker does not see.
#![expect(unsafe_code, reason = "system calls")]

mod images;
mod kernel;
mod threads;

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU32;
use std::time::{Duration, SystemTime};

use super::memory;
use super::modules::{FoundModule, Module, UnwindModule};
use super::stacks::{StackBounds, ThreadName, UsedStacks};
use super::system::{Piece, System};

/// The system.
#[derive(Clone, Copy, Debug)]
pub(super) enum MacOs {}

impl System for MacOs {
    const PAGE: usize = if cfg!(target_arch = "aarch64") { 16 << 10 } else { 4096 };
    const ADDRESS_BITS: u32 = 47;
    // System libraries sign their return addresses in programs that do not, too: the signature is
    // in the bits above those of addresses.
    const RETURN_ADDRESS: usize =
        if cfg!(target_arch = "aarch64") { (1 << Self::ADDRESS_BITS) - 1 } else { usize::MAX };
    const THREADS_START_UNSEEN: bool = false;
    // Apple's compilers keep frame pointers, and its unwind information is in another format.
    const HAS_UNWIND_INFO: bool = false;
    // The kernel reserves nothing.
    const NO_RESERVE: c_int = 0;
    const IF_FREE: c_int = 0;
    const WAIT: c_int = 0;

    #[inline(always)]
    fn errno() -> *mut c_int {
        // SAFETY: a call without arguments.
        unsafe { libc::__error() }
    }

    /// Copies the content to a new mapping: there is no `mremap`.
    unsafe fn grow(start: NonNull<u8>, bytes: usize, longer: usize) -> Option<NonNull<u8>> {
        let pages = memory::map(longer)?;
        // SAFETY: both are mappings of at least so many bytes, and the new one is another's.
        unsafe { start.copy_to_nonoverlapping(pages, bytes.min(longer)) };
        // SAFETY: by this function's contract it is a whole mapping, which is no longer used.
        unsafe { memory::unmap(start, bytes) };
        Some(pages)
    }

    /// Does nothing: the kernel gives huge pages only to mappings that are made with them.
    fn prefer_huge_pages(_pages: NonNull<u8>, _bytes: usize) {}

    fn make_huge_pages(_pages: NonNull<u8>, _bytes: usize) {}

    #[cfg(not(loom))]
    fn wait_for_change(word: &AtomicU32, seen: u32, at_most: Duration) {
        // 0 would be without end.
        let timeout = u32::try_from(at_most.as_micros()).unwrap_or(u32::MAX).max(1);
        // SAFETY: the word lives during the call, which reads four bytes of it.
        unsafe {
            kernel::__ulock_wait(kernel::WAIT, word.as_ptr().cast(), u64::from(seen), timeout)
        };
    }

    #[cfg(not(loom))]
    fn wake_all(word: &AtomicU32) {
        // SAFETY: the kernel compares the address with those of waiting threads.
        unsafe { kernel::__ulock_wake(kernel::WAKE_ALL, word.as_ptr().cast(), 0) };
    }

    /// Returns `false`: the system's clock reads the counter without a system call, and converts
    /// it.
    fn trusts_counter() -> bool {
        false
    }

    /// Returns `false`: programs have tagged memory only if they are signed for it.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn tags_memory() -> bool {
        false
    }

    /// Unlike on Linux, handlers for forks run, and the program gets `SIGCHLD`.
    unsafe fn fork() -> libc::pid_t {
        // SAFETY: this function has the same contract.
        unsafe { libc::fork() }
    }

    fn read_words_checked(address: usize, words: &mut [usize]) -> usize {
        kernel::read_words(address, words)
    }

    fn read_ranges_checked(ranges: &[Range<usize>], words: &mut [usize]) -> usize {
        let mut read = 0;
        for range in ranges {
            let length = range.len() / size_of::<usize>();
            let Some(place) = words.get_mut(read..read + length) else { return read };
            let found = kernel::read_words(range.start, place);
            read += found;
            if found < length {
                return read;
            }
        }
        read
    }

    fn write_pieces(descriptor: c_int, pieces: &[Piece], position: u64) -> i64 {
        let count = c_int::try_from(pieces.len()).unwrap_or(c_int::MAX);
        let (start, position) = (pieces.as_ptr().cast(), position.cast_signed());
        // SAFETY: the pieces are initialised; the kernel checks the address of each.
        let written = unsafe { libc::pwritev(descriptor, start, count, position) };
        i64::try_from(written).unwrap_or(-1)
    }

    fn thread_id() -> u32 {
        threads::id()
    }

    fn is_thread(id: u32) -> bool {
        threads::exists(id)
    }

    fn own_thread_name() -> ThreadName {
        threads::own_name()
    }

    fn thread_name(id: u32) -> Option<String> {
        threads::name(id)
    }

    fn thread_handle() -> usize {
        // SAFETY: `pthread_self` has no precondition.
        unsafe { libc::pthread_self() }
    }

    /// Not read yet.
    fn used_stacks(_stack_pointer: usize) -> UsedStacks {
        UsedStacks::default()
    }

    fn above_main_frames(arguments: usize) -> usize {
        arguments
    }

    /// Does nothing: the main thread finds its stack as the others do.
    fn note_main_stack(_above_all_frames: usize) {}

    /// Does nothing: the C library has a function that returns the bounds.
    fn note_descriptor() {}

    fn stack_bounds() -> Option<StackBounds> {
        threads::stack_bounds()
    }

    fn modules() -> Vec<Module> {
        images::modules()
    }

    fn module_of(code: usize) -> Option<(usize, usize)> {
        images::range_of(code)
    }

    /// Returns `None`: programs have such notes for the preloaded library, which is for Linux.
    fn program_note(_name: [u8; 12], _kind: u32) -> Option<&'static [u8]> {
        None
    }

    fn keep_marks() {
        images::keep_marks();
    }

    /// Opens the file by its path at the start of the program: it may be another file by now.
    fn open_program() -> io::Result<File> {
        File::open(std::env::current_exe()?)
    }

    fn each_unwind_module(visit: &mut dyn FnMut(UnwindModule)) {
        images::each_code(visit);
    }

    /// Returns `None`: no module has unwind information that is read.
    fn find_module(_code: usize) -> Option<FoundModule> {
        None
    }

    /// Returns `None`: fingerprints belong to rules of unwind information.
    fn fingerprint(_code: usize) -> Option<u64> {
        None
    }

    fn function_start(code: usize) -> Option<usize> {
        images::function_start(code)
    }

    fn monotonic() -> u64 {
        kernel::monotonic()
    }

    fn uptime() -> Duration {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        let age = now.zip(kernel::start_of_process()).map(|(now, start)| now.saturating_sub(start));
        age.unwrap_or(Duration::ZERO)
    }

    fn resident_bytes() -> Option<u64> {
        kernel::resident_bytes()
    }

    /// Between two calls, a program that another thread starts may inherit the pipe: there is no
    /// `pipe2`.
    fn pipe() -> io::Result<[OwnedFd; 2]> {
        let mut ends = [-1; 2];
        // SAFETY: `ends` is valid for the write of two descriptors.
        check(unsafe { libc::pipe(ends.as_mut_ptr()) })?;
        // SAFETY: the successful call above opened them, and nothing else has them.
        let ends = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        for end in &ends {
            let flags = [(libc::F_SETFD, libc::FD_CLOEXEC), (libc::F_SETFL, libc::O_NONBLOCK)];
            for (command, flag) in flags {
                // SAFETY: sets flags of an open descriptor.
                check(unsafe { libc::fcntl(end.as_raw_fd(), command, flag) })?;
            }
        }
        Ok(ends)
    }

    /// Does nothing: most versions of the system have no `quick_exit`.
    fn at_quick_exit(_function: extern "C" fn()) {}
}

fn check(result: c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Places a function pointer among those that the dynamic linker calls before `main`, with the
/// arguments of the program.
#[doc(hidden)]
#[macro_export]
macro_rules! __before_main {
    ($item:item) => {
        #[unsafe(link_section = "__DATA,__mod_init_func")]
        #[used]
        $item
    };
}

/// Declares nothing: programs have such notes for the preloaded library, which is for Linux.
#[doc(hidden)]
#[macro_export]
macro_rules! __note_c_heap {
    ($hooks:ident) => {
        const _: &$crate::__private::CHeapHooks = &$hooks;
    };
}

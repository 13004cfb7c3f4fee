//! Linux, with glibc or musl, on x86-64 and aarch64.
#![expect(unsafe_code, reason = "system calls")]

mod modules;
mod process;
mod threads;
mod unwind_tables;
mod used_stacks;

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
#[cfg(not(loom))]
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::modules::{FoundModule, Module, UnwindModule};
use super::stacks::{StackBounds, ThreadName, UsedStacks};
use super::system::{MAX_RANGES, Piece, System};

/// The system.
#[derive(Clone, Copy, Debug)]
pub(super) enum Linux {}

impl System for Linux {
    const PAGE: usize = 4096;
    const ADDRESS_BITS: u32 = if cfg!(target_arch = "aarch64") { 48 } else { 47 };
    const RETURN_ADDRESS: usize = usize::MAX;
    // musl is built without unwind information. The reference of its programs, LLVM's, leaves out
    // such frames.
    const THREADS_START_UNSEEN: bool = cfg!(target_env = "musl");
    const HAS_UNWIND_INFO: bool = true;
    // Miri does not know the flag, and reserves nothing.
    const NO_RESERVE: c_int = if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };
    const IF_FREE: c_int = libc::MAP_FIXED_NOREPLACE;
    // For children without a signal at their end.
    const WAIT: c_int = libc::__WALL;

    #[inline(always)]
    fn errno() -> *mut c_int {
        // SAFETY: a call without arguments.
        unsafe { libc::__errno_location() }
    }

    unsafe fn grow(start: NonNull<u8>, bytes: usize, longer: usize) -> Option<NonNull<u8>> {
        // SAFETY: by this function's contract the range is one whole mapping, which the caller
        // owns.
        let pages =
            unsafe { libc::mremap(start.as_ptr().cast(), bytes, longer, libc::MREMAP_MAYMOVE) };
        if pages == libc::MAP_FAILED { None } else { NonNull::new(pages.cast()) }
    }

    fn prefer_huge_pages(pages: NonNull<u8>, bytes: usize) {
        // SAFETY: `MADV_HUGEPAGE` changes neither the content nor the protection of a page.
        unsafe { libc::madvise(pages.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }

    fn make_huge_pages(pages: NonNull<u8>, bytes: usize) {
        // Since Linux 6.1. An older one refuses.
        const MADV_COLLAPSE: i32 = 25;
        // SAFETY: it changes neither the content nor the protection of a page.
        unsafe { libc::madvise(pages.as_ptr().cast(), bytes, MADV_COLLAPSE) };
    }

    #[cfg(not(loom))]
    fn wait_for_change(word: &AtomicU32, seen: u32, at_most: Duration) {
        let timeout = libc::timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        futex(word, libc::FUTEX_WAIT, seen, &raw const timeout);
    }

    #[cfg(not(loom))]
    fn wake_all(word: &AtomicU32) {
        futex(word, libc::FUTEX_WAKE, i32::MAX.cast_unsigned(), ptr::null());
    }

    fn trusts_counter() -> bool {
        /// The kernel's choice of a clock.
        const CHOICE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(CHOICE).is_ok_and(|name| name.trim() == "tsc")
    }

    #[cfg(target_arch = "aarch64")]
    #[inline]
    fn tags_memory() -> bool {
        process::tags_memory()
    }

    unsafe fn fork() -> libc::pid_t {
        // SAFETY: without flags this is a fork, and the order of the null arguments does not
        // matter. The child's limits are this function's contract.
        let child = unsafe {
            libc::syscall(
                libc::SYS_clone,
                0,
                ptr::null::<u8>(),
                ptr::null::<u8>(),
                ptr::null::<u8>(),
                0,
            )
        };
        libc::pid_t::try_from(child).unwrap_or(-1)
    }

    fn read_words_checked(address: usize, words: &mut [usize]) -> usize {
        let size = size_of_val(words);
        let here = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size };
        let there =
            libc::iovec { iov_base: ptr::with_exposed_provenance_mut(address), iov_len: size };
        // SAFETY: `getpid` has no precondition.
        let own = unsafe { libc::getpid() };
        // SAFETY: the kernel checks the source range, and writes at most `size` bytes to `words`.
        let read =
            unsafe { libc::process_vm_readv(own, &raw const here, 1, &raw const there, 1, 0) };
        usize::try_from(read).unwrap_or(0) / size_of::<usize>()
    }

    fn read_ranges_checked(ranges: &[Range<usize>], words: &mut [usize]) -> usize {
        let size = size_of_val(words);
        let here = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size };
        let none = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        let mut there = [none; MAX_RANGES];
        for (there, range) in there.iter_mut().zip(ranges) {
            there.iov_base = ptr::with_exposed_provenance_mut(range.start);
            there.iov_len = range.len();
        }
        let count = ranges.len().min(MAX_RANGES) as libc::c_ulong;
        // SAFETY: `getpid` has no precondition.
        let own = unsafe { libc::getpid() };
        // SAFETY: the kernel checks the source ranges, and writes at most `size` bytes to `words`.
        let read =
            unsafe { libc::process_vm_readv(own, &raw const here, 1, there.as_ptr(), count, 0) };
        usize::try_from(read).unwrap_or(0) / size_of::<usize>()
    }

    fn write_pieces(descriptor: c_int, pieces: &[Piece], position: u64) -> i64 {
        let (start, count) = (pieces.as_ptr(), pieces.len());
        // Not `pwritev`, which AddressSanitizer replaces. A position is one word on these systems.
        // SAFETY: the pieces are initialised; the kernel checks the address of each.
        unsafe { libc::syscall(libc::SYS_pwritev, descriptor, start, count, position, 0_u64) }
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
        threads::handle()
    }

    fn used_stacks(stack_pointer: usize) -> UsedStacks {
        used_stacks::used_stacks(stack_pointer)
    }

    fn above_main_frames(arguments: usize) -> usize {
        threads::above_main_frames(arguments)
    }

    fn note_main_stack(above_all_frames: usize) {
        threads::note_main_stack(above_all_frames);
    }

    fn note_descriptor() {
        threads::note_descriptor();
    }

    fn stack_bounds() -> Option<StackBounds> {
        threads::stack_bounds()
    }

    fn modules() -> Vec<Module> {
        modules::all()
    }

    fn module_of(code: usize) -> Option<(usize, usize)> {
        modules::range_of(code)
    }

    fn program_note(name: [u8; 12], kind: u32) -> Option<&'static [u8]> {
        modules::program_note(name, kind)
    }

    fn keep_marks() {
        modules::keep_marks();
    }

    fn open_program() -> io::Result<File> {
        File::open("/proc/self/exe")
    }

    fn each_unwind_module(visit: &mut dyn FnMut(UnwindModule)) {
        unwind_tables::each(visit);
    }

    fn find_module(code: usize) -> Option<FoundModule> {
        unwind_tables::find(code)
    }

    fn fingerprint(code: usize) -> Option<u64> {
        unwind_tables::fingerprint(code)
    }

    #[inline(always)]
    fn function_start(_code: usize) -> Option<usize> {
        None
    }

    fn monotonic() -> u64 {
        process::monotonic()
    }

    fn uptime() -> Duration {
        process::uptime()
    }

    fn resident_bytes() -> Option<u64> {
        process::resident_bytes()
    }

    fn pipe() -> io::Result<[OwnedFd; 2]> {
        let mut ends = [-1; 2];
        // SAFETY: `ends` is valid for the write of two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the successful call above opened them, and nothing else has them.
        Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
    }

    #[cfg(target_env = "gnu")]
    fn at_quick_exit(function: extern "C" fn()) {
        unsafe extern "C" {
            // `at_quick_exit` is in the part of glibc that is linked statically.
            fn __cxa_at_quick_exit(
                function: extern "C" fn(),
                library: *mut std::ffi::c_void,
            ) -> c_int;
        }
        // SAFETY: as `atexit`. Without a library, the function stays registered.
        unsafe { __cxa_at_quick_exit(function, ptr::null_mut()) };
    }

    #[cfg(not(target_env = "gnu"))]
    fn at_quick_exit(_function: extern "C" fn()) {}
}

#[cfg(not(loom))]
fn futex(word: &AtomicU32, operation: i32, value: u32, timeout: *const libc::timespec) {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives during the call, and the timeout is null or readable.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) };
}

/// Places a function pointer among those that the dynamic linker calls before `main`, with the
/// arguments of the program.
#[doc(hidden)]
#[macro_export]
macro_rules! __before_main {
    ($item:item) => {
        #[unsafe(link_section = ".init_array")]
        #[used]
        $item
    };
}

/// Declares an ELF note that leads to this static: the distance from the note's content.
#[doc(hidden)]
#[macro_export]
macro_rules! __note_c_heap {
    ($hooks:ident) => {
        #[cfg(target_pointer_width = "64")]
        ::core::arch::global_asm!(
            ".pushsection .note.memreport.c,\"a\",@note",
            ".p2align 2",
            ".long 12, 8, 2",
            ".asciz \"memreport\"",
            ".zero 2",
            ".quad {hooks} - .",
            ".popsection",
            hooks = sym $hooks,
        );
    };
}

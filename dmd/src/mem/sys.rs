//! The operating system, and nothing of it anywhere else: pages, stacks, threads, modules.
#![expect(unsafe_code, reason = "system calls")]
#![expect(
    clippy::cast_possible_truncation,
    reason = "addresses have 64 bits on all systems that are written for"
)]

use std::ffi::{CStr, c_int, c_void};
use std::num::NonZeroUsize;
use std::ptr::{self, NonNull};

use once_cell::race::OnceNonZeroUsize;

/// The bytes of a page, at most: used for rounding only.
pub(crate) const PAGE: usize = 4096;

/// Addresses of a program's memory lie below this.
pub(crate) const ADDRESS_END: usize = 1 << 47;

/// Fresh zeroed pages, or `None` if the system has none left. Resident only once touched.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping of its own, at an address that the system chooses.
    let pages = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
    if pages == libc::MAP_FAILED { None } else { NonNull::new(pages.cast()) }
}

/// Makes a mapping longer, at another address if need be. What is new are zeros, in huge pages where the system has them for who asks.
///
/// # Safety
///
/// A whole mapping of [`map`] of so many bytes. If it is moved, nobody uses the old address any more.
pub(crate) unsafe fn lengthen(
    start: NonNull<u8>,
    bytes: usize,
    longer: usize,
) -> Option<NonNull<u8>> {
    // SAFETY: the caller's promise.
    let pages = unsafe { libc::mremap(start.as_ptr().cast(), bytes, longer, libc::MREMAP_MAYMOVE) };
    if pages == libc::MAP_FAILED {
        return None;
    }
    let pages = NonNull::new(pages.cast())?;
    prefer_huge_pages(pages, longer);
    Some(pages)
}

/// As [`map`], for what is used as a whole: in huge pages where the system has them for who asks.
pub(crate) fn map_whole(bytes: usize) -> Option<NonNull<u8>> {
    let pages = map(bytes)?;
    prefer_huge_pages(pages, bytes);
    Some(pages)
}

/// A hint, of a mapping of ours: where it is refused, pages are small.
fn prefer_huge_pages(pages: NonNull<u8>, bytes: usize) {
    if bytes >= HUGE && !cfg!(miri) {
        // SAFETY: advice changes nothing of what is there, or whether it is.
        unsafe { libc::madvise(pages.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

/// Has the line of memory at this address fetched, whatever it is the address of.
#[inline]
pub(crate) fn fetch<T>(address: *const T) {
    #[cfg(all(not(miri), target_arch = "x86_64"))]
    // SAFETY: a fetch reads nothing, and of an address that is not mapped it does nothing.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    let _ = address;
}

/// The bytes of a huge page. A mapping of less has none: more would be wasted than it holds.
pub(crate) const HUGE: usize = 2 << 20;

/// Maps fresh zeroed pages at this very address; `false` if something is there already, or the system cannot.
pub(crate) fn map_at(address: usize, bytes: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let wanted = ptr::with_exposed_provenance_mut::<c_void>(address);
    // SAFETY: replaces no mapping.
    let pages = unsafe { libc::mmap(wanted, bytes, access, kind, -1, 0) };
    if pages != libc::MAP_FAILED && pages != wanted {
        // An old kernel takes the address for a hint.
        // SAFETY: mapped above, and unknown to anybody.
        unsafe { libc::munmap(pages, bytes) };
    }
    pages == wanted
}

/// The word at this address of this process, whatever it is; `None` if it cannot be read.
pub(crate) fn own_word(address: usize) -> Option<u64> {
    let mut word = 0_u64;
    let size = size_of_val(&word);
    let here = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: size };
    let there = libc::iovec { iov_base: ptr::with_exposed_provenance_mut(address), iov_len: size };
    // SAFETY: a plain call.
    let own = unsafe { libc::getpid() };
    // SAFETY: the system checks what it reads, and writes to a place of this size.
    let read = unsafe { libc::process_vm_readv(own, &raw const here, 1, &raw const there, 1, 0) };
    (usize::try_from(read) == Ok(size)).then_some(word)
}

/// Reads words of this process from an aligned address, whatever they are; says how many could be read.
pub(crate) fn own_words(address: usize, words: &mut [usize]) -> usize {
    let size = size_of_val(words);
    let here = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size };
    let there = libc::iovec { iov_base: ptr::with_exposed_provenance_mut(address), iov_len: size };
    // SAFETY: a plain call.
    let own = unsafe { libc::getpid() };
    // SAFETY: the system checks what it reads, and writes to a place of this size.
    let read = unsafe { libc::process_vm_readv(own, &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(read).unwrap_or(0) / size_of::<usize>()
}

/// The file that holds this code.
pub(crate) fn own_file() -> Option<String> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: a valid place for the answer.
    if unsafe { libc::dladdr(own_file as *const c_void, found.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: filled in by the call above.
    let name = unsafe { found.assume_init() }.dli_fname;
    // SAFETY: a string of the linker, alive while this code is loaded.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// Gives pages back.
///
/// # Safety
///
/// They come from [`map`] with this size, and nobody uses them any more.
pub(crate) unsafe fn unmap(pages: NonNull<u8>, bytes: usize) {
    // SAFETY: handed on.
    unsafe { libc::munmap(pages.as_ptr().cast(), bytes) };
}

/// The word in memory at this address, as it is: padding and what was never written have some value too.
///
/// The address is that of a live block or value of this program, or of a part of a stack that is known to be there.
#[inline(always)]
pub(crate) fn word_at(address: usize) -> usize {
    let word: usize;
    // A load that the compiler knows nothing of: it may not assume that the bytes were ever written.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: mapped memory, by the caller's word; nothing is written.
    unsafe {
        std::arch::asm!("mov {}, [{}]", out(reg) word, in(reg) address, options(nostack, readonly, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: mapped memory, by the caller's word; nothing is written.
    unsafe {
        std::arch::asm!("ldr {}, [{}]", out(reg) word, in(reg) address, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = address;
        word = 0;
    }
    word
}

/// Whether the word at this address can be read. Asks the system, which says no where a read would end the program.
pub(crate) fn is_readable(address: usize) -> bool {
    let mut word = 0_usize;
    let own = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: size_of::<usize>() };
    let there = libc::iovec { iov_base: ptr::without_provenance_mut(address), ..own };
    // SAFETY: a plain call.
    let process = unsafe { libc::getpid() };
    // SAFETY: copies to `word`, of its size; what may be read is checked by the system.
    let copied =
        unsafe { libc::process_vm_readv(process, &raw const own, 1, &raw const there, 1, 0) };
    copied == size_of::<usize>().cast_signed()
}

/// How long the process has been running.
pub(crate) fn uptime() -> std::time::Duration {
    // Field 22 of the process, in clock ticks since the system's start; the second field may hold anything.
    let started = || {
        let text = std::fs::read_to_string("/proc/self/stat").ok()?;
        let ticks: f64 =
            text.rsplit_once(") ")?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
        // SAFETY: a plain call.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Some(ticks / per_second as f64)
    };
    let now = || {
        std::fs::read_to_string("/proc/uptime")
            .ok()?
            .split_ascii_whitespace()
            .next()?
            .parse::<f64>()
            .ok()
    };
    match (started(), now()) {
        (Some(started), Some(now)) => std::time::Duration::from_secs_f64((now - started).max(0.0)),
        _ => std::time::Duration::ZERO,
    }
}

/// The system's monotonic clock, in nanoseconds. It may be read in a hook: neither a lock nor, mostly, a system call.
pub(crate) fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// The kernel's number of this thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: a plain call.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(id).unwrap_or(0)
}

/// Bytes of this process that are in physical memory now.
pub(crate) fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE as u64)
}

/// The name of a thread of this process, if it lives.
pub(crate) fn thread_name(id: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// The addresses of a stack, from its lowest to one past its highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackBounds {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

/// Where the main thread's stack is, once [`note_main_stack`] was called. Read by hooks, so without a lock.
static MAIN_STACK_HIGH: OnceNonZeroUsize = OnceNonZeroUsize::new();
static MAIN_STACK_LOW: OnceNonZeroUsize = OnceNonZeroUsize::new();

/// Remembers where the stack of the main thread is. To be called on it, before `main`.
///
/// The C library can tell too, but reads `/proc` for it, which a hook must not.
pub(crate) fn note_main_stack(above_all_frames: usize) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    let most = if known { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 8 << 20 };
    let low = above_all_frames.saturating_sub(most.min(1 << 30));
    if let (Some(low), Some(high)) = (NonZeroUsize::new(low), NonZeroUsize::new(above_all_frames)) {
        // Low first: whoever sees the end sees the beginning. Set before, they stay as they are.
        let _ = MAIN_STACK_LOW.set(low);
        let _ = MAIN_STACK_HIGH.set(high);
    }
}

/// Where this thread's stack is. Neither allocates through Rust nor does I/O.
pub(crate) fn stack_bounds() -> Option<StackBounds> {
    if thread_id() == std::process::id() {
        let (high, low) = (MAIN_STACK_HIGH.get()?, MAIN_STACK_LOW.get()?);
        return Some(StackBounds { low: low.get(), high: high.get() });
    }
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::zeroed();
    // SAFETY: a plain call.
    let own = unsafe { libc::pthread_self() };
    // SAFETY: this thread, and a valid place for the answer.
    if unsafe { libc::pthread_getattr_np(own, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut size) = (ptr::null_mut::<c_void>(), 0);
    // SAFETY: filled in by the call above.
    let known =
        unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size) }
            == 0;
    // SAFETY: filled in by the first call, and not used after this.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    known.then(|| StackBounds { low: low.addr(), high: low.addr() + size })
}

/// A piece of code that the dynamic linker has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) path: String,
    /// What is added to the addresses in the file to get those in memory.
    pub(crate) bias: usize,
    /// The addresses of its segments in memory.
    pub(crate) segments: Vec<(usize, usize)>,
    /// Those of them that can be written: where its statics are.
    pub(crate) data: Vec<(usize, usize)>,
    /// The build id, in hexadecimal.
    pub(crate) build_id: Option<String>,
}

/// All modules that are loaded now. Takes the linker's lock: never from a hook.
pub(crate) fn modules() -> Vec<Module> {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker hands in a valid description.
        let info = unsafe { &*info };
        // SAFETY: the vector given below, which nobody else uses meanwhile.
        let found = unsafe { &mut *found.cast::<Vec<Module>>() };
        // SAFETY: the description's own table.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        // SAFETY: a string of the linker, alive during the call.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        found.push(module(name, info.dlpi_addr as usize, headers));
        0
    }
    let mut found: Vec<Module> = Vec::new();
    // SAFETY: `visit` keeps the vector only during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}

fn module(name: &CStr, bias: usize, headers: &[libc::Elf64_Phdr]) -> Module {
    let place = |header: &libc::Elf64_Phdr| {
        let start = bias.wrapping_add(header.p_vaddr as usize);
        (start, start + header.p_memsz as usize)
    };
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let data = loaded().filter(|header| header.p_flags & libc::PF_W != 0).map(place).collect();
    let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE).map(place);
    // The linker leaves the program itself without a name.
    let path = match name.to_bytes() {
        b"" => std::env::current_exe().unwrap_or_default().to_string_lossy().into_owned(),
        name => String::from_utf8_lossy(name).into_owned(),
    };
    let segments: Vec<_> = loaded().map(place).collect();
    let build_id = notes
        .filter(|&(start, end)| segments.iter().any(|&(low, high)| low <= start && end <= high))
        // SAFETY: inside a loaded segment, and notes are never unmapped while the linker's lock is held.
        .find_map(|(start, end)| build_id(unsafe { bytes_at(start, end) }))
        .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect());
    Module { path, bias, segments, data, build_id }
}

/// # Safety
///
/// The range is mapped and readable for as long as the answer is used.
unsafe fn bytes_at(start: usize, end: usize) -> &'static [u8] {
    // SAFETY: handed on.
    unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(start), end - start) }
}

/// The build id among a segment's notes.
pub(crate) fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_at_checked(12)?;
        let word = |at: usize| {
            head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes)
        };
        let (name_size, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let (name, rest) = rest.split_at_checked(name_size.next_multiple_of(4))?;
        let (description, rest) = rest.split_at_checked(size.next_multiple_of(4))?;
        if kind == NT_GNU_BUILD_ID && name.starts_with(b"GNU\0") {
            return description.get(..size);
        }
        notes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_a_module_with_a_build_id() {
        let modules = modules();
        let here = this_program_is_a_module_with_a_build_id as *const () as usize;
        let own = modules
            .iter()
            .find(|module| module.segments.iter().any(|&(low, high)| (low..high).contains(&here)));
        let own = own.expect("the program is loaded");
        assert!(own.path.contains("dmd"), "{}", own.path);
        assert!(own.build_id.as_ref().is_some_and(|id| id.len() >= 32), "{:?}", own.build_id);
    }

    #[test]
    fn a_spawned_thread_knows_its_stack() {
        let (bounds, local) = std::thread::spawn(|| {
            let local = 0_u8;
            (stack_bounds(), (&raw const local).addr())
        })
        .join()
        .unwrap();
        let bounds = bounds.unwrap();
        assert!(bounds.low <= local && local < bounds.high);
    }

    #[test]
    fn what_is_readable_is_told_from_what_is_not() {
        let local = 0_usize;
        assert!(is_readable((&raw const local).addr()));
        assert!(!is_readable(0));
        assert!(!is_readable(usize::MAX - 100));
    }

    #[test]
    fn notes_without_a_build_id_have_none() {
        assert_eq!(build_id(b""), None);
        assert_eq!(build_id(b"\x04\0\0\0\x02\0\0\0\x01\0\0\0GNU\0ab\0\0"), None);
        assert_eq!(
            build_id(b"\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0\xab\x01\0\0"),
            Some(&[0xab, 1][..])
        );
    }
}

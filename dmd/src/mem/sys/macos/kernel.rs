//! Functions of the kernel and the dynamic linker that `libc` lacks, and figures of the process.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::time::Duration;

use super::MacOs;
use crate::mem::sys::system::System;

/// The operations of `__ulock_wait` and `__ulock_wake`: a word of four bytes, and all its waiters.
pub(super) const WAIT: u32 = 1;
pub(super) const WAKE_ALL: u32 = 0x100 | WAIT;

/// The kind of `proc_pidinfo` that looks a thread up by its number.
const THREAD_BY_NUMBER: c_int = 15;

unsafe extern "C" {
    /// The port of this process.
    static mach_task_self_: libc::mach_port_t;

    fn mach_vm_read_overwrite(
        task: libc::mach_port_t,
        address: u64,
        size: u64,
        data: u64,
        out_size: *mut u64,
    ) -> libc::kern_return_t;

    safe fn clock_gettime_nsec_np(clock: libc::clockid_t) -> u64;

    /// Sleeps while the word at the address has this value, at most for a time in microseconds.
    /// libc++ waits by it. The documented `os_sync_wait_on_address` is there since macOS 14.4.
    pub(super) fn __ulock_wait(
        operation: u32,
        address: *mut c_void,
        value: u64,
        timeout: u32,
    ) -> c_int;

    // Functions of the dynamic linker. They take any index.
    pub(super) safe fn _dyld_image_count() -> u32;
    pub(super) safe fn _dyld_get_image_header(index: u32) -> *const c_void;
    pub(super) safe fn _dyld_get_image_vmaddr_slide(index: u32) -> isize;
    pub(super) safe fn _dyld_get_image_name(index: u32) -> *const c_char;

    pub(super) fn __ulock_wake(operation: u32, address: *mut c_void, value: u64) -> c_int;
}

fn own_task() -> libc::mach_port_t {
    // SAFETY: the C library sets the variable before it calls any other code, and after a fork.
    unsafe { mach_task_self_ }
}

/// Reads words from an aligned address, and returns how many are readable. A call of the kernel
/// reads all bytes or none, so that others read up to the first page that is not there.
///
/// A signal handler must not call it: it could take the reply to a call that it interrupts. Walks
/// along frame pointers do not need it.
pub(super) fn read_words(address: usize, words: &mut [usize]) -> usize {
    const WORD: usize = size_of::<usize>();
    if read(address, words) {
        return words.len();
    }
    let mut done = 0;
    while done < words.len() {
        let from = address.wrapping_add(done * WORD);
        let to_end = (MacOs::PAGE - from % MacOs::PAGE) / WORD;
        let part = to_end.clamp(1, words.len() - done);
        if !read(from, &mut words[done..done + part]) {
            break;
        }
        done += part;
    }
    done
}

/// Reads all of these words, or returns `false`.
fn read(address: usize, words: &mut [usize]) -> bool {
    let (size, to) = (size_of_val(words) as u64, words.as_mut_ptr().expose_provenance() as u64);
    let mut copied = 0;
    // SAFETY: the kernel checks the source range, and writes at most `size` bytes to `words`.
    let error =
        unsafe { mach_vm_read_overwrite(own_task(), address as u64, size, to, &raw mut copied) };
    error == libc::KERN_SUCCESS && copied == size
}

/// Returns the monotonic clock in nanoseconds, which stands still while the machine sleeps. The C
/// library reads the processor's counter, and makes no system call.
pub(super) fn monotonic() -> u64 {
    clock_gettime_nsec_np(libc::CLOCK_UPTIME_RAW)
}

/// Returns the resident memory of this process in bytes.
pub(super) fn resident_bytes() -> Option<u64> {
    let mut info = MaybeUninit::<libc::mach_task_basic_info>::zeroed();
    let mut count = libc::MACH_TASK_BASIC_INFO_COUNT;
    let place = info.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `count` words, which is the size of `info`.
    let error =
        unsafe { libc::task_info(own_task(), libc::MACH_TASK_BASIC_INFO, place, &raw mut count) };
    // SAFETY: all zeros is a valid value too.
    let info = unsafe { info.assume_init() };
    (error == libc::KERN_SUCCESS).then_some(info.resident_size)
}

/// Returns the time from the Unix epoch to the start of the process.
pub(super) fn start_of_process() -> Option<Duration> {
    let info: libc::proc_bsdinfo = process_info(libc::PROC_PIDTBSDINFO, 0)?;
    let micros = Duration::from_micros(info.pbi_start_tvusec);
    Duration::from_secs(info.pbi_start_tvsec).checked_add(micros)
}

/// Returns the kernel's description of the thread of this number; `None` if there is none, or the
/// kernel does not tell, by `errno`.
pub(super) fn thread_info(id: u32) -> Option<libc::proc_threadinfo> {
    process_info(THREAD_BY_NUMBER, u64::from(id))
}

/// A description by `proc_pidinfo`.
///
/// # Safety
///
/// All zeros is a valid value.
unsafe trait Description {}

// SAFETY: it consists of numbers.
unsafe impl Description for libc::proc_bsdinfo {}
// SAFETY: it consists of numbers.
unsafe impl Description for libc::proc_threadinfo {}

/// Returns what the kernel tells about this process. It takes one system call and no memory.
fn process_info<T: Description>(kind: c_int, argument: u64) -> Option<T> {
    let mut info = MaybeUninit::<T>::zeroed();
    let size = c_int::try_from(size_of::<T>()).ok()?;
    // SAFETY: `getpid` has no precondition.
    let own = unsafe { libc::getpid() };
    // SAFETY: the kernel writes at most `size` bytes, which is the size of `info`.
    let written =
        unsafe { libc::proc_pidinfo(own, kind, argument, info.as_mut_ptr().cast(), size) };
    // SAFETY: all zeros is a valid value, by the contract of the trait, as is the kernel's.
    (written == size).then(|| unsafe { info.assume_init() })
}

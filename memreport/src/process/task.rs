//! Reads single figures of this process from macOS's kernel. Compiled, not run.
#![expect(unsafe_code, reason = "system calls")]

use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime};

use super::figures::Faults;
use super::unavailable::Unavailable;

/// The first part of the kernel's `task_vm_info`, which every version since 10.9 fills.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct VmInfo {
    virtual_size: u64,
    region_count: i32,
    page_size: i32,
    resident_size: u64,
    /// Its peak; then devices, internal, external and reusable memory, each with its peak.
    others: [u64; 9],
    purgeable: [u64; 3],
    /// Its peak, and its sum since the process began.
    compressed: [u64; 3],
    phys_footprint: u64,
}

/// The kernel counts words of four bytes.
const WORDS_OF_VM_INFO: u32 = 38;
const _: () = assert!(size_of::<VmInfo>() == WORDS_OF_VM_INFO as usize * size_of::<u32>());

const TASK_VM_INFO: u32 = 22;

unsafe extern "C" {
    /// The port of this process.
    static mach_task_self_: libc::mach_port_t;
}

/// A description by `task_info`.
///
/// # Safety
///
/// All zeros is a valid value, and the kernel's description of this flavor begins with this type.
unsafe trait Description: Copy {
    const FLAVOR: u32;
    const NAME: &'static str;
}

// SAFETY: it consists of numbers, by the kernel's header.
unsafe impl Description for libc::mach_task_basic_info {
    const FLAVOR: u32 = libc::MACH_TASK_BASIC_INFO;
    const NAME: &'static str = "task_info(MACH_TASK_BASIC_INFO)";
}

// SAFETY: it consists of numbers, by the kernel's header.
unsafe impl Description for VmInfo {
    const FLAVOR: u32 = TASK_VM_INFO;
    const NAME: &'static str = "task_info(TASK_VM_INFO)";
}

/// Returns the kernel's description of this process. It takes microseconds.
fn task_info<T: Description>() -> Result<T, Unavailable> {
    let mut info = MaybeUninit::<T>::zeroed();
    let all = u32::try_from(size_of::<T>() / size_of::<u32>()).unwrap_or(0);
    let mut words = all;
    // SAFETY: the C library sets the variable before it calls any other code.
    let own = unsafe { mach_task_self_ };
    // SAFETY: the kernel writes at most `words` words, which is the size of `info`.
    let error =
        unsafe { libc::task_info(own, T::FLAVOR, info.as_mut_ptr().cast(), &raw mut words) };
    if error != libc::KERN_SUCCESS {
        let source = io::Error::other(format!("the kernel's error {error}"));
        return Err(Unavailable::NotRead { path: T::NAME, source });
    }
    if words < all {
        return Err(Unavailable::NotUnderstood { path: T::NAME });
    }
    // SAFETY: all zeros is a valid value, by the contract of the trait, as is the kernel's.
    Ok(unsafe { info.assume_init() })
}

/// Returns the bytes of address space and the resident bytes.
pub(crate) fn sizes() -> Result<(u64, u64), Unavailable> {
    let info = task_info::<libc::mach_task_basic_info>()?;
    Ok((info.virtual_size, info.resident_size))
}

/// Returns the high-water mark of resident bytes.
pub(crate) fn peak() -> Result<u64, Unavailable> {
    Ok(task_info::<libc::mach_task_basic_info>()?.resident_size_max)
}

/// Returns the bytes that the system charges to the process.
pub(super) fn footprint() -> Result<u64, Unavailable> {
    Ok(task_info::<VmInfo>()?.phys_footprint)
}

/// Returns the page faults. The kernel's own counters have 32 bits, and stay at their end.
pub(crate) fn faults() -> Result<Faults, Unavailable> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for the write.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        let source = io::Error::last_os_error();
        return Err(Unavailable::NotRead { path: "getrusage", source });
    }
    // SAFETY: all zeros is a valid value, as is the kernel's.
    let usage = unsafe { usage.assume_init() };
    let count = |faults| u64::try_from(faults).unwrap_or(0);
    Ok(Faults { soft: count(usage.ru_minflt), hard: count(usage.ru_majflt) })
}

/// Returns the age of the process in milliseconds, by the clock of the day.
pub(crate) fn age() -> Option<u64> {
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = libc::c_int::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    let own = libc::c_int::try_from(std::process::id()).ok()?;
    let place = info.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `size` bytes, which is the size of `info`.
    if unsafe { libc::proc_pidinfo(own, libc::PROC_PIDTBSDINFO, 0, place, size) } != size {
        return None;
    }
    // SAFETY: all zeros is a valid value, as is the kernel's.
    let info = unsafe { info.assume_init() };
    let micros = Duration::from_micros(info.pbi_start_tvusec);
    let start = Duration::from_secs(info.pbi_start_tvsec).checked_add(micros)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(now.checked_sub(start)?.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_all_figures() {
        let (size, resident) = sizes().unwrap();
        assert!(0 < resident && resident <= size);
        assert!(peak().unwrap() >= resident);
        assert!(footprint().unwrap() > 0);
        assert!(faults().unwrap().soft > 0);
        assert!(age().is_some());
    }
}

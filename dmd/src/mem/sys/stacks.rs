//! Threads: their kernel numbers, names and stacks.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr;

use once_cell::race::OnceNonZeroUsize;

/// Returns the kernel's number of this thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: `gettid` has no precondition.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(id).unwrap_or(0)
}

/// Calls `with` on the name of this thread. Hooks call it: it takes one system call and no memory.
pub(crate) fn with_own_thread_name<R>(with: impl FnOnce(&[u8]) -> R) -> R {
    let mut name = [0_u8; 16];
    // SAFETY: the kernel writes at most 16 bytes, the last one a 0.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    with(&name[..length])
}

/// Returns the name of a thread of this process, if the thread is alive.
pub(crate) fn thread_name(id: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// The address range of a stack. `high` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackBounds {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

/// The bounds of the main thread's stack, set by [`note_main_stack`]. Hooks read them, so without a
/// lock.
static MAIN_STACK_HIGH: OnceNonZeroUsize = OnceNonZeroUsize::new();
static MAIN_STACK_LOW: OnceNonZeroUsize = OnceNonZeroUsize::new();

/// Stores the bounds of the main thread's stack. Call it on that thread, before `main`.
///
/// The C library could compute them too, but it reads `/proc` for that, which a hook must not.
pub(crate) fn note_main_stack(above_all_frames: usize) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the write of one `rlimit`.
    let is_set = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    let most = if is_set { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 8 << 20 };
    let low = above_all_frames.saturating_sub(most.min(1 << 30));
    if let (Some(low), Some(high)) = (NonZeroUsize::new(low), NonZeroUsize::new(above_all_frames)) {
        // Low first: a reader that sees `high` sees `low` too. A second call changes nothing.
        let _ = MAIN_STACK_LOW.set(low);
        let _ = MAIN_STACK_HIGH.set(high);
    }
}

/// Returns the bounds of this thread's stack. It neither allocates through Rust nor does I/O.
pub(crate) fn stack_bounds() -> Option<StackBounds> {
    if thread_id() == std::process::id() {
        let (high, low) = (MAIN_STACK_HIGH.get()?, MAIN_STACK_LOW.get()?);
        return Some(StackBounds { low: low.get(), high: high.get() });
    }
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::zeroed();
    // SAFETY: `pthread_self` has no precondition.
    let own = unsafe { libc::pthread_self() };
    // SAFETY: `own` is this live thread, and `attributes` is valid for the write.
    if unsafe { libc::pthread_getattr_np(own, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut size) = (ptr::null_mut::<c_void>(), 0);
    // SAFETY: the successful call above initialised `attributes`.
    let is_set =
        unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size) }
            == 0;
    // SAFETY: `attributes` is initialised, and not used after this.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    is_set.then(|| StackBounds { low: low.addr(), high: low.addr() + size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spawned_thread_finds_its_stack() {
        let (bounds, local) = std::thread::spawn(|| {
            let local = 0_u8;
            (stack_bounds(), (&raw const local).addr())
        })
        .join()
        .unwrap();
        let bounds = bounds.unwrap();
        assert!(bounds.low <= local && local < bounds.high);
    }
}

//! Threads: their kernel numbers, names and stacks.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::ptr;

use once_cell::race::OnceNonZeroUsize;

use crate::mem::sys::errno::keeping_errno;
use crate::mem::sys::stacks::{MAX_NAME, StackBounds, ThreadName};
use crate::mem::sys::word_at;

/// Returns the kernel's number of this thread.
pub(super) fn id() -> u32 {
    // SAFETY: `gettid` has no precondition.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(id).unwrap_or(0)
}

/// Returns the `pthread_t` of this thread, the address of its descriptor in glibc and musl.
#[allow(
    clippy::cast_possible_truncation,
    reason = "as big as an address; a number in glibc, a pointer in musl"
)]
pub(super) fn handle() -> usize {
    // SAFETY: `pthread_self` has no precondition.
    unsafe { libc::pthread_self() as usize }
}

/// Returns whether a thread of this process has this number of the kernel's. `true` if the system
/// does not tell.
pub(super) fn exists(id: u32) -> bool {
    let Ok(id) = libc::pid_t::try_from(id) else { return true };
    let process = std::process::id();
    keeping_errno(|| {
        // SAFETY: signal 0 is not sent; the call only checks the number.
        let result = unsafe { libc::syscall(libc::SYS_tgkill, process, id, 0) };
        result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
    })
}

/// Returns the name of this thread. Hooks call it: it takes one system call and no memory.
pub(super) fn own_name() -> ThreadName {
    let mut name = [0_u8; MAX_NAME];
    // SAFETY: the kernel writes at most 16 bytes, the last one a 0.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    ThreadName(name)
}

/// Returns the name of a thread of this process, if the thread is alive.
pub(super) fn name(id: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// The bounds of the main thread's stack, set by [`note_main_stack`]. Hooks read them, so without a
/// lock.
static MAIN_STACK_HIGH: OnceNonZeroUsize = OnceNonZeroUsize::new();
static MAIN_STACK_LOW: OnceNonZeroUsize = OnceNonZeroUsize::new();

/// Returns an address above all frames of the main thread: where the program's arguments are, which
/// functions before `main` are given. musl gives them nothing, so that it is the address of the
/// program's name there, which the kernel writes above the arguments.
pub(super) fn above_main_frames(arguments: usize) -> usize {
    if cfg!(target_env = "musl") {
        // SAFETY: a look-up without side effects; 0 if the kernel tells nothing.
        let name = unsafe { libc::getauxval(libc::AT_EXECFN) };
        return usize::try_from(name).unwrap_or(0);
    }
    arguments
}

/// Stores the bounds of the main thread's stack. Call it on that thread, before `main`.
///
/// The C library could compute them too, but it reads `/proc` for that, which a hook must not.
pub(super) fn note_main_stack(above_all_frames: usize) {
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

/// The offset of a stack's words in glibc's descriptor of a thread, set by [`note_descriptor`].
static STACK_WORDS: OnceNonZeroUsize = OnceNonZeroUsize::new();

/// Finds where glibc keeps the bounds of a thread's stack. Call it on the main thread, outside
/// hooks.
///
/// Hooks could call `pthread_getattr_np`, but it takes a lock and allocates. A descriptor has
/// three words in a row: the start of the mapping, its size, and the size of the guard. For the
/// main thread glibc sets the start to 0 and the size to `__libc_stack_end`.
pub(super) fn note_descriptor() {
    // SAFETY: the name is a C string, and a look-up has no side effects.
    let stack_end = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_stack_end".as_ptr()) };
    // SAFETY: as above. Debuggers and sanitizers read this variable: the size of a descriptor.
    let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_thread_db_sizeof_pthread".as_ptr()) };
    if stack_end.is_null() || size.is_null() {
        return;
    }
    // SAFETY: the variable of glibc is a `uint32_t`.
    let size = unsafe { size.cast::<u32>().read() } as usize;
    let (stack_end, descriptor) = (word_at(stack_end.addr()), descriptor());
    // All but the last two words of the descriptor, so that the three words lie inside.
    let offsets = (WORD..size.saturating_sub(size_of::<[usize; 2]>())).step_by(WORD);
    let word = |offset: usize| word_at(descriptor + offset);
    let place =
        offsets.into_iter().find(|offset| word(*offset) == 0 && word(offset + WORD) == stack_end);
    if let Some(offset) = place.and_then(NonZeroUsize::new) {
        // A second call finds the same.
        let _ = STACK_WORDS.set(offset);
    }
}

const WORD: usize = size_of::<usize>();

/// Returns the address of this thread's descriptor in the C library.
#[allow(clippy::cast_possible_truncation, reason = "a pointer, in some C libraries as an integer")]
fn descriptor() -> usize {
    // SAFETY: `pthread_self` has no precondition.
    unsafe { libc::pthread_self() as usize }
}

/// Returns the bounds of this thread's stack by its descriptor. Returns `None` if the layout of the
/// descriptor is unknown.
fn bounds_by_descriptor() -> Option<StackBounds> {
    let descriptor = descriptor();
    let place = descriptor + STACK_WORDS.get()?.get();
    let word = |index: usize| word_at(place + index * WORD);
    let (start, size, guard) = (word(0), word(1), word(2));
    let bounds = StackBounds { low: start.checked_add(guard)?, high: start.checked_add(size)? };
    // The descriptor lies at the top of the mapping, also if the program provides the stack.
    let is_valid = start != 0 && bounds.low < descriptor && descriptor < bounds.high;
    is_valid.then_some(bounds)
}

/// Returns the bounds of this thread's stack. In hooks it takes no lock and allocates nothing,
/// except on a C library whose descriptors are unknown (see [`note_descriptor`]).
pub(super) fn stack_bounds() -> Option<StackBounds> {
    if id() == std::process::id() {
        let (high, low) = (MAIN_STACK_HIGH.get()?, MAIN_STACK_LOW.get()?);
        return Some(StackBounds { low: low.get(), high: high.get() });
    }
    bounds_by_descriptor().or_else(bounds_by_attributes)
}

/// Returns the bounds of this thread's stack from the C library. In glibc this takes a lock and
/// allocates; in musl it does neither.
fn bounds_by_attributes() -> Option<StackBounds> {
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
    use std::sync::OnceLock;
    use std::thread;

    use super::*;

    /// The stack of the main thread, before and after it is stored, and the address of a local.
    static MAIN_STACK: OnceLock<(Option<StackBounds>, Option<StackBounds>, usize)> =
        OnceLock::new();

    // The test harness has no test on the main thread, so the C library calls this before `main`.
    #[used]
    #[cfg_attr(not(miri), unsafe(link_section = ".init_array"))]
    static AT_START: extern "C" fn() = {
        extern "C" fn at_start() {
            let local = 0_u8;
            let local = (&raw const local).addr();
            let before = stack_bounds();
            note_main_stack(local + 4096);
            note_descriptor();
            let _ = MAIN_STACK.set((before, stack_bounds(), local));
        }
        at_start
    };

    #[test]
    fn the_main_thread_has_the_stack_that_was_stored() {
        let (before, after, local) = *MAIN_STACK.get().expect("it is set before `main`");
        let bounds = after.expect("it was stored");
        assert_eq!((before, bounds.high), (None, local + 4096));
        let size = bounds.high - bounds.low;
        assert!((64 << 10..=1 << 30).contains(&size), "{size}");
    }

    #[test]
    fn a_name_is_cut_after_15_bytes_and_errno_stays() {
        let check = || {
            let own = id();
            // SAFETY: signal 0 is not sent. The call fails: there is no such process.
            assert_eq!(unsafe { libc::kill(libc::pid_t::MAX, 0) }, -1);
            assert!(exists(own));
            assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::ESRCH));
            assert_eq!(name(own).as_deref(), Some("a-long-name-of-"));
            assert_eq!(own_name().bytes(), b"a-long-name-of-");
        };
        let thread = thread::Builder::new().name("a-long-name-of-a-thread".into());
        thread.spawn(check).expect("a thread").join().expect("it does not panic");
        // The kernel has no such numbers, and is not asked.
        assert!(exists(u32::MAX));
    }

    #[test]
    fn a_spawned_thread_finds_its_stack() {
        for size in [16 << 10, 100 << 10, 2 << 20] {
            let check = move || {
                let local = 0_u8;
                let (local, bounds) = ((&raw const local).addr(), stack_bounds().unwrap());
                assert!(bounds.low <= local && local < bounds.high, "{size}: {bounds:x?}");
                assert_eq!(bounds_by_attributes(), Some(bounds), "{size}");
                if cfg!(target_env = "gnu") {
                    assert_eq!(bounds_by_descriptor(), Some(bounds), "{size}");
                }
            };
            thread::Builder::new().stack_size(size).spawn(check).unwrap().join().unwrap();
        }
    }
}

//! Stacks with foreign frames: callbacks of the C library, signals, and stacks other than the
//! thread's own.
#![expect(unsafe_code, reason = "calls the C library")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use memreport_workload::Numbers;

use crate::compare::Kind;
use crate::paths;

type Work<'w> = &'w mut dyn FnMut();

thread_local! {
    /// The work for the callback of a sort or a search, to run once.
    static WORK: Cell<Option<*mut c_void>> = const { Cell::new(None) };
}

/// Does the work, unless it is done already.
extern "C" fn compare(left: *const c_void, right: *const c_void) -> c_int {
    if let Some(work) = WORK.take() {
        // SAFETY: set by `lend`, which waits for the C library to return.
        let work = unsafe { &mut *work.cast::<Work<'_>>() };
        work();
    }
    // SAFETY: both are elements of the arrays below.
    let left = unsafe { *left.cast::<u32>() };
    // SAFETY: both are elements of the arrays below.
    let right = unsafe { *right.cast::<u32>() };
    left.cmp(&right) as c_int
}

fn lend(mut work: Work<'_>, call: impl FnOnce()) {
    let outer = WORK.replace(Some((&raw mut work).cast()));
    call();
    WORK.set(outer);
}

/// Works inside a comparison of `qsort`.
#[inline(never)]
pub(crate) fn sort(work: Work<'_>) {
    let mut numbers = [5_u32, 3, 9, 1, 7, 2, 8];
    lend(work, || {
        // SAFETY: an array of seven, and a function that compares two elements.
        unsafe { libc::qsort(numbers.as_mut_ptr().cast(), 7, 4, Some(compare)) };
    });
    assert!(numbers.is_sorted());
}

/// Works inside a comparison of `bsearch`.
#[inline(never)]
pub(crate) fn search(work: Work<'_>) {
    let numbers = [1_u32, 2, 3, 5, 7, 8, 9];
    lend(work, || {
        let key = &raw const numbers[4];
        // SAFETY: an array of seven, and a function that compares two elements.
        let found =
            unsafe { libc::bsearch(key.cast(), numbers.as_ptr().cast(), 7, 4, Some(compare)) };
        assert_eq!(found.cast_const().cast(), key);
    });
}

/// The seed and the depth of the handlers' walk.
static SEED: AtomicU64 = AtomicU64::new(1);
static DEPTH: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(signal: c_int) {
    let kind = if signal == libc::SIGUSR1 { Kind::InSignal } else { Kind::OnSignalStack };
    let depth = DEPTH.swap(0, Relaxed);
    paths::go(&mut Numbers::new(SEED.load(Relaxed)), depth, kind);
}

/// Installs the handlers: SIGUSR1 on the thread's stack, SIGUSR2 on the signal stack.
///
/// In general a handler must not allocate; here the thread raises each signal itself, at a safe
/// place.
pub(crate) fn answer_signals() -> io::Result<()> {
    for (signal, flags) in [(libc::SIGUSR1, 0), (libc::SIGUSR2, libc::SA_ONSTACK)] {
        // SAFETY: zero is a valid action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
        action.sa_flags = flags | libc::SA_NODEFER;
        // SAFETY: a valid action.
        if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Interrupts itself, and walks a path in the handler.
#[inline(never)]
pub(crate) fn interrupt(on_own_stack: bool, seed: u64, depth: u64) {
    SEED.store(seed, Relaxed);
    DEPTH.store(depth, Relaxed);
    if on_own_stack {
        // SAFETY: the handler is installed above.
        unsafe { libc::raise(libc::SIGUSR1) };
    } else {
        on_signal_stack(|| {
            // SAFETY: the handler is installed above.
            unsafe { libc::raise(libc::SIGUSR2) };
        });
    }
}

/// Gives the thread a signal stack large enough for a path, unless it runs on one now.
fn on_signal_stack(interrupt: impl FnOnce()) {
    let mut memory = vec![0_u8; 1 << 20];
    let own =
        libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
    let mut before = own;
    // SAFETY: the memory is large enough, and lives until the next call.
    unsafe { libc::sigaltstack(&raw const own, &raw mut before) };
    interrupt();
    // SAFETY: the stack that was set before.
    unsafe { libc::sigaltstack(&raw const before, ptr::null_mut()) };
}

/// Returns the processor time of this thread.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Works on another stack, from which the frames lead to the thread's own.
#[inline(never)]
pub(crate) fn on_other_stack(work: Work<'_>) {
    stacker::grow(4 << 20, work);
}

/// Returns the return addresses along the frame pointers, with no check except that they ascend.
///
/// This is the lower bound of the cost of a stack. It requires a build with frame pointers.
#[inline(never)]
pub(crate) fn along_frame_pointers(addresses: &mut [usize]) -> usize {
    let mut frame: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mov {}, x29", out(reg) frame, options(nomem, nostack));
    }
    let mut count = 0;
    for place in addresses {
        let saved = ptr::with_exposed_provenance::<[usize; 2]>(frame);
        // SAFETY: a frame of this thread, as long as all code keeps frame pointers.
        let [outer, address] = unsafe { saved.read_volatile() };
        *place = address;
        count += 1;
        if outer <= frame || outer - frame > 1 << 16 {
            break;
        }
        frame = outer;
    }
    count
}

//! Unusual stacks: a program's own, one that overflows, one of ten thousand frames.
#![expect(unsafe_code, reason = "makes a stack and goes there")]

use std::cell::RefCell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;
use std::thread;

use crate::Failure;
use crate::planted::{plant, save};

/// Blocks that are kept after they were made elsewhere.
type Kept = RefCell<Vec<Vec<u8>>>;

thread_local! {
    static MADE: Kept = const { RefCell::new(Vec::new()) };
}

extern "C" fn on_own_stack() {
    let _ = MADE.try_with(|made| made.borrow_mut().extend(deep_down(20)));
}

#[inline(never)]
fn deep_down(depth: u32) -> Vec<Vec<u8>> {
    if depth == 0 { plant(6) } else { black_box(deep_down(depth - 1)) }
}

/// Allocates on a stack that is not a thread's own.
pub(crate) fn own(path: &Path) -> Result<(), Failure> {
    const BYTES: usize = 256 << 10;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping.
    let pages = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, kind, -1, 0) };
    if pages == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error().into());
    }
    let (mut here, mut there) =
        (MaybeUninit::<libc::ucontext_t>::zeroed(), MaybeUninit::<libc::ucontext_t>::zeroed());
    // SAFETY: `context` is writable.
    unsafe { libc::getcontext(there.as_mut_ptr()) };
    // SAFETY: filled in by the call above.
    let context = unsafe { there.assume_init_mut() };
    context.uc_stack.ss_sp = pages;
    context.uc_stack.ss_size = BYTES;
    context.uc_link = here.as_mut_ptr();
    // SAFETY: the context has a stack, and a context to return to.
    unsafe { libc::makecontext(context, on_own_stack, 0) };
    // SAFETY: made above; it returns here when the function ends.
    unsafe { libc::swapcontext(here.as_mut_ptr(), there.as_ptr()) };
    save(path)?;
    // SAFETY: mapped above; no context uses it any more.
    unsafe { libc::munmap(pages, BYTES) };
    Ok(())
}

/// Recurses without end, with a block in each frame.
#[expect(unconditional_recursion, reason = "what is tested")]
#[inline(never)]
fn without_end(kept: &[u8]) -> Vec<u8> {
    let more = black_box(vec![1_u8; 64]);
    let mut below = without_end(black_box(&more));
    below.extend(kept);
    black_box(below)
}

/// Overflows the stack of the main thread.
pub(crate) fn overflow(path: &Path) -> Result<(), Failure> {
    let planted = plant(6);
    save(path)?;
    black_box(without_end(&[]));
    drop(planted);
    Ok(())
}

/// Overflows the stack of another thread.
pub(crate) fn overflow_of_a_thread(path: &Path) -> Result<(), Failure> {
    let planted = plant(6);
    save(path)?;
    let thread = thread::Builder::new().name("deep".to_owned()).stack_size(256 << 10);
    let thread = thread.spawn(|| black_box(without_end(&[])))?;
    let ended = thread.join();
    drop(planted);
    ended.map(drop).map_err(|_| "it panicked".into())
}

/// Makes blocks below ten thousand calls.
pub(crate) fn deep(path: &Path) -> Result<(), Failure> {
    let thread = thread::Builder::new().stack_size(64 << 20).spawn(|| deep_down(10_000))?;
    let kept = thread.join().map_err(|_| "it panicked")?;
    save(path)?;
    drop(kept);
    Ok(())
}

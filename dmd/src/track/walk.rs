//! Call stacks: the return addresses from here outwards.
#![expect(unsafe_code, reason = "reads the stack of its own thread")]

use std::ptr;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::sys::StackBounds;
use super::thread::{Inside, MAX_FRAMES};

/// How stacks are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwinder {
    /// Not decided yet: no stacks.
    None,
    /// Along the saved frame pointers: nanoseconds, for programs built with them.
    FramePointers,
    /// By the crate `backtrace`: microseconds, for all others.
    Backtrace,
}

impl Unwinder {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unwinder::None => "none",
            Unwinder::FramePointers => "frame pointers",
            Unwinder::Backtrace => "backtrace",
        }
    }
}

static UNWINDER: AtomicU8 = AtomicU8::new(0);

/// Stacks with more frames than are kept, and stacks on memory that is not the thread's own.
static CUT: AtomicUsize = AtomicUsize::new(0);

/// The unwinder in use.
#[inline]
pub(crate) fn unwinder() -> Unwinder {
    match UNWINDER.load(Relaxed) {
        1 => Unwinder::FramePointers,
        2 => Unwinder::Backtrace,
        _ => Unwinder::None,
    }
}

/// How many stacks were cut short.
pub(crate) fn cut() -> usize {
    CUT.load(Relaxed)
}

/// Finds out which unwinder this program was built for. Not from a hook: the reference unwinder may take locks.
pub(crate) fn choose() {
    let chosen =
        if agrees_with_reference() { Unwinder::FramePointers } else { Unwinder::Backtrace };
    UNWINDER.store(chosen as u8, Relaxed);
}

/// Leaves the frames of this stack at the end of the thread's buffer, the outermost first, and says where they begin.
#[inline(always)]
pub(crate) fn walk(inside: &Inside<'_>) -> usize {
    match unwinder() {
        Unwinder::FramePointers => {
            let Some(bounds) = inside.thread.bounds(inside) else { return MAX_FRAMES };
            walk_frame_pointers(bounds, inside)
        }
        Unwinder::Backtrace => walk_backtrace(inside),
        Unwinder::None => MAX_FRAMES,
    }
}

#[inline(always)]
fn walk_frame_pointers(bounds: StackBounds, inside: &Inside<'_>) -> usize {
    let frames = &inside.thread.frames;
    let mut begin = MAX_FRAMES;
    // Two words are read of each frame: the caller's frame, and the return address.
    let last = bounds.high - 2 * size_of::<usize>();
    let mut frame = frame_pointer();
    if frame < bounds.low || frame > last || !frame.is_multiple_of(size_of::<usize>()) {
        CUT.fetch_add(1, Relaxed);
        return begin;
    }
    // The first return address is in the hook that this is called from.
    let own = ptr::with_exposed_provenance::<usize>(frame);
    // SAFETY: as below.
    let caller = unsafe { own.read() };
    if caller > frame && caller <= last && caller.is_multiple_of(size_of::<usize>()) {
        frame = caller;
    }
    loop {
        let saved = ptr::with_exposed_provenance::<[usize; 2]>(frame);
        // SAFETY: inside this thread's stack and above its top, so mapped; only this thread writes there.
        let [outer, return_address] = unsafe { saved.read() };
        if return_address < LOWEST_CODE {
            return begin;
        }
        begin -= 1;
        frames[begin].set(return_address);
        if outer <= frame || outer > last || !outer.is_multiple_of(size_of::<usize>()) {
            return begin;
        }
        if begin == 0 {
            CUT.fetch_add(1, Relaxed);
            return begin;
        }
        frame = outer;
    }
}

/// No program has code in its first page.
const LOWEST_CODE: usize = 4096;

/// The unwinder's own frames come first, and how many they are depends on the build: whoever reads the dump drops all up to
/// the allocator's.
#[cold]
#[inline(never)]
fn walk_backtrace(inside: &Inside<'_>) -> usize {
    let mut begin = MAX_FRAMES;
    let keep = |frame: &backtrace::Frame| {
        if begin == 0 {
            CUT.fetch_add(1, Relaxed);
            return false;
        }
        // Some unwinders end with a frame that is none.
        if !frame.ip().is_null() {
            begin -= 1;
            inside.thread.frames[begin].set(frame.ip().addr());
        }
        true
    };
    // SAFETY: what is synchronised otherwise is the resolving of symbols, which does not happen here.
    unsafe { backtrace::trace_unsynchronized(keep) };
    begin
}

/// Whether frame pointers give the same frames as the reference does, in code built as this program is.
fn agrees_with_reference() -> bool {
    std::hint::black_box(third as fn() -> bool)()
}

#[inline(never)]
fn third() -> bool {
    std::hint::black_box(second as fn() -> bool)()
}

#[inline(never)]
fn second() -> bool {
    std::hint::black_box(first as fn() -> bool)()
}

#[inline(never)]
fn first() -> bool {
    let local = 0_u8;
    let low = (&raw const local).addr();
    // These three functions' frames lie close above this one.
    let bounds = StackBounds { low: low.saturating_sub(sys_page()), high: low + sys_page() };
    let own = few_frames(bounds);
    let mut reference = [0; 16];
    let mut length = 0;
    backtrace::trace(|frame| {
        if length < reference.len() {
            reference[length] = frame.ip().addr();
            length += 1;
        }
        length < reference.len()
    });
    // The reference begins inside itself; the callers of this function are the same for both.
    own[0] != 0 && reference.windows(own.len()).any(|window| window == own)
}

fn sys_page() -> usize {
    super::sys::PAGE
}

/// The return addresses of this function's callers' frames: of `first`, `second` and `third`.
#[inline(always)]
fn few_frames(bounds: StackBounds) -> [usize; 3] {
    let mut frames = [0; 3];
    let mut frame = frame_pointer();
    for place in &mut frames {
        if frame < bounds.low || frame + 16 > bounds.high || !frame.is_multiple_of(8) {
            break;
        }
        let saved = ptr::with_exposed_provenance::<[usize; 2]>(frame);
        // SAFETY: within a page of a local variable, above it or in its frame: this thread's stack.
        let [outer, return_address] = unsafe { saved.read() };
        *place = return_address;
        if outer <= frame {
            break;
        }
        frame = outer;
    }
    frames
}

/// The frame pointer of the function that this is inlined in.
#[inline(always)]
fn frame_pointer() -> usize {
    let frame: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mov {}, x29", out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        frame = 0;
    }
    frame
}

//! Stack walking: the return addresses from this frame outwards.
//!
//! Read `rule` (how to get from a frame to its caller), `unwind_info`, `modules` and `rule_cache`
//! (where rules come from), `memory` (what may be read), `last` (the cache of the last stack), then
//! `frames` and `frame_pointers` (the walks). Frames in common with the thread's last stack are
//! verified instead of walked. The crate `backtrace` is the reference unwinder, for code without a
//! usable rule.

mod rule;
mod rule_cache;
mod unwind_info;
mod modules;
mod cfi;
mod frame_pointers;
mod registers;
mod memory;
pub(crate) mod last;
mod frames;
mod reference;
pub(crate) mod tally;

use std::ffi::c_void;

pub(crate) use self::frame_pointers::Chain;
use self::frame_pointers::ChainEnd;
use self::frames::End;
use self::last::{LastStack, MAX_FRAMES};
use self::modules::Moment;
pub(crate) use self::modules::{AddressRange, note_loaded, own_range};
pub(crate) use self::registers::Registers;
use self::tally::Tally;
use super::own_code;
use super::thread::{self, Inside, Thread};
use crate::mem::published::Published;
use crate::mem::sys::{self, StackBounds};
use crate::sample::unwinder::Unwinder;

/// The bytes of stack that a walk may need below the hook: most of them to evaluate a rule that is
/// not cached yet. Without optimisation its functions take three times as much.
const ROOM: usize = if cfg!(debug_assertions) { 32 << 10 } else { 8 << 10 };

/// The bytes of stack that the reference unwinder may need.
const ROOM_FOR_REFERENCE: usize = if cfg!(debug_assertions) { 6 << 10 } else { 4 << 10 };

/// The unwinder. What it reads in hooks, the loaded modules, is stored before it.
static UNWINDER: Published = Published::new(Unwinder::None as u32);

/// Returns the unwinder in use.
#[inline]
pub(crate) fn unwinder() -> Unwinder {
    of_number(UNWINDER.get())
}

/// Returns whether this unwinder is in use.
#[inline(always)]
fn is_in_use(unwinder: Unwinder) -> bool {
    UNWINDER.get() == unwinder as u32
}

/// Returns the unwinder of a number; of others, none.
#[inline]
fn of_number(number: u32) -> Unwinder {
    match number {
        1 => Unwinder::FramePointers,
        2 => Unwinder::Cfi,
        3 => Unwinder::FramePointersOnly,
        4 => Unwinder::Backtrace,
        _ => Unwinder::None,
    }
}

/// Chooses the unwinder: the first of the requested one and the built-in order that agrees with the
/// reference unwinder. Once one is chosen, only a request for another one changes it, since the
/// stacks of one place differ between unwinders. Never call it from a hook: `backtrace::trace`,
/// used for the comparison, takes a lock.
pub(crate) fn choose(requested: Option<Unwinder>) {
    modules::record_loaded(Moment::Running);
    let current = unwinder();
    if current != Unwinder::None && requested.is_none_or(|requested| requested == current) {
        return;
    }
    // Only a preloaded tracker has a module of its own from the start.
    let is_preloaded = own_code::is_whole_module();
    // The program of a preloaded tracker was built in another way than the tracker.
    let order: &[Unwinder] = if is_preloaded {
        &[Unwinder::Cfi]
    } else if !sys::HAS_UNWIND_INFO {
        &[Unwinder::FramePointersOnly]
    } else {
        &[Unwinder::FramePointers, Unwinder::Cfi, Unwinder::FramePointersOnly]
    };
    let requested = requested.filter(|unwinder| !is_preloaded || *unwinder == Unwinder::Backtrace);
    let chosen = match requested {
        Some(Unwinder::Backtrace) => None,
        _ => requested.iter().chain(order).copied().find(|unwinder| agrees(*unwinder)),
    };
    UNWINDER.set(chosen.unwrap_or(Unwinder::Backtrace) as u32);
}

/// Returns how many stacks all threads have walked.
pub(crate) fn tally() -> Tally {
    tally::sum(thread::registered().map(|thread| thread.number))
}

/// Returns the start of the function that contains this code, if its module has an index of
/// unwind information, or the system lists functions elsewhere.
pub(crate) fn function_start(code: usize) -> Option<usize> {
    modules::find(code)
        .and_then(|found| found.unwind_info.function_start(code))
        .or_else(|| sys::function_start(code))
}

/// Walks the stack into the thread's last stack, without the frame that this is inlined into.
#[inline(always)]
pub(crate) fn walk(last: &LastStack, inside: &Inside<'_>) {
    let here = registers::capture();
    if is_in_use(Unwinder::Cfi)
        && let Some(own) = inside.thread.bounds(inside)
        && !own.is_near_end(here.stack_pointer, ROOM)
    {
        let is_complete = walk_by_cfi(here, own, last);
        inside.thread.count_walk(is_complete);
    } else {
        walk_from(unwinder(), here, last, inside);
    }
}

/// Calls `look_up` with the chain from the caller of the frame that this is inlined into outwards,
/// the attribution and the thread, if frame pointers lead to frames that the last walk has found
/// around the program. Returns its result, or the chain if there is none.
///
/// Equal hashes are of equal chains. A chain is a stack if it leaves out no frames: see [`follow`]
/// and [`is_along`].
#[inline(always)]
pub(crate) fn find<T>(
    last: &LastStack,
    inside: &Inside<'_>,
    attribution: u32,
    look_up: impl Fn(Chain, u32, &Thread) -> Option<T>,
) -> Result<T, Option<Chain>> {
    if !is_in_use(Unwinder::FramePointers) {
        return Err(None);
    }
    find_from(registers::capture(), last, inside, attribution, look_up)
}

/// Walks this chain, which [`find`] has returned in the same function, into the thread's last
/// stack. Returns false if the chain may not be the stack: then [`walk`] finds that.
#[inline(always)]
pub(crate) fn follow(chain: Chain, last: &LastStack, inside: &Inside<'_>) -> bool {
    follow_from(registers::capture(), chain, last, inside)
}

#[cold]
#[inline(never)]
fn follow_from(here: Registers, chain: Chain, last: &LastStack, inside: &Inside<'_>) -> bool {
    let Some(own) = inside.thread.bounds(inside) else { return false };
    let is_stack = frame_pointers::follow(here, own, chain, last);
    if is_stack {
        inside.thread.count_walk(true);
    }
    is_stack
}

/// Returns whether the stack that [`walk`] has found is this chain, as far as it is stored.
pub(crate) fn is_along(chain: Chain, last: &LastStack) -> bool {
    frame_pointers::is_along(chain, last)
}

// Not inlined: in a function of its own, all values are in registers.
#[inline(never)]
fn find_from<T>(
    here: Registers,
    last: &LastStack,
    inside: &Inside<'_>,
    attribution: u32,
    look_up: impl Fn(Chain, u32, &Thread) -> Option<T>,
) -> Result<T, Option<Chain>> {
    let own = inside.thread.bounds(inside).ok_or(None)?;
    if own.is_near_end(here.stack_pointer, ROOM) || inside.thread.is_learning.get() {
        return Err(None);
    }
    let seed = last.seed_of(|| inside.thread.number());
    let chain = frame_pointers::hash(here, own, seed, last).ok_or(None)?;
    look_up(chain, attribution, inside.thread).ok_or(Some(chain))
}

#[inline(never)]
fn walk_from(unwinder: Unwinder, here: Registers, last: &LastStack, inside: &Inside<'_>) -> bool {
    let is_complete = match (unwinder, inside.thread.bounds(inside)) {
        (Unwinder::None, _) => {
            // Not counted as a walk: no unwinder is chosen yet.
            last.replace_by_addresses(&[]);
            return false;
        }
        (_, Some(own)) if own.is_near_end(here.stack_pointer, ROOM) => {
            walk_in_little_room(here, own, last)
        }
        (Unwinder::FramePointers, Some(own)) => {
            frame_pointers::walk(here, own, last).unwrap_or_else(|| walk_by_cfi(here, own, last))
        }
        (Unwinder::Cfi, Some(own)) => walk_by_cfi(here, own, last),
        (Unwinder::FramePointersOnly, Some(own)) => walk_by_frame_pointers_only(here, own, last),
        (Unwinder::Backtrace, _) if inside.thread.is_recorder.get() => {
            // Hooks wait for a recorder, and the reference may wait for the linker's lock, which a
            // thread that waits in a hook may hold.
            last.replace_by_addresses(&[]);
            return false;
        }
        (Unwinder::Backtrace, _) => reference::walk(None, last),
        (_, None) => {
            last.replace_by_addresses(&[]);
            false
        }
    };
    inside.thread.count_walk(is_complete);
    is_complete
}

/// Walks where the thread's stack is nearly full: by the reference unwinder, or not at all.
#[cold]
fn walk_in_little_room(here: Registers, own: StackBounds, last: &LastStack) -> bool {
    if !own.is_near_end(here.stack_pointer, ROOM_FOR_REFERENCE) {
        return reference::walk(None, last);
    }
    last.replace_by_addresses(&[]);
    false
}

#[inline(always)]
fn walk_by_cfi(here: Registers, own: StackBounds, last: &LastStack) -> bool {
    // Words, which the hook need not store for the call.
    let Registers { stack_pointer, frame_pointer, instruction } = here;
    walk_by_rules(stack_pointer, frame_pointer, instruction, own, last)
}

#[inline(never)]
fn walk_by_rules(
    stack_pointer: usize,
    frame_pointer: usize,
    instruction: usize,
    own: StackBounds,
    last: &LastStack,
) -> bool {
    let here = Registers { stack_pointer, frame_pointer, instruction };
    let end = frames::walk(here, own, last);
    end == End::Outermost || (end == End::Unsupported && walk_by_reference(last))
}

fn walk_by_frame_pointers_only(here: Registers, own: StackBounds, last: &LastStack) -> bool {
    // Each chain of the thread ends at the same frame, where the C library starts the thread. A
    // chain that ends elsewhere is truncated.
    let end = frame_pointers::walk_to_end(here, own, last);
    let root = match end {
        ChainEnd::At(root) if !last.is_root(root) => root,
        ChainEnd::Known | ChainEnd::At(_) => {
            last.reusable.set(last.length.get());
            return true;
        }
    };
    let is_complete = walk_by_reference(last);
    last.set_root(root);
    is_complete
}

#[cold]
fn walk_by_reference(last: &LastStack) -> bool {
    reference::walk(last.innermost(), last)
}

/// Returns whether an unwinder finds the same frames as the reference, in code built as this
/// program is.
fn agrees(unwinder: Unwinder) -> bool {
    std::hint::black_box(probe_outer as fn(Unwinder) -> bool)(unwinder)
}

#[inline(never)]
fn probe_outer(unwinder: Unwinder) -> bool {
    std::hint::black_box(probe_middle as fn(Unwinder) -> bool)(unwinder)
}

#[inline(never)]
fn probe_middle(unwinder: Unwinder) -> bool {
    std::hint::black_box(probe_inner as fn(Unwinder) -> bool)(unwinder)
}

#[inline(never)]
fn probe_inner(unwinder: Unwinder) -> bool {
    let compare = |thread: &Thread| {
        let inside = Inside::enter(thread)?;
        let last = inside.last_stack()?;
        let here = registers::capture();
        let bounds = thread.bounds(&inside)?;
        let is_complete = match unwinder {
            // Without the fallback to CFI.
            Unwinder::FramePointers => frame_pointers::walk(here, bounds, last)?,
            _ => walk_from(unwinder, here, last, &inside),
        };
        let (mut own, mut reference) = ([0; MAX_FRAMES], [0; MAX_FRAMES]);
        let own = last.copy_to(&mut own);
        let (mut length, mut probe_depth) = (0, 0);
        backtrace::trace(|frame| {
            if let Some(place) = reference.get_mut(length).filter(|_| !frame.ip().is_null()) {
                *place = frame.ip().addr();
                length += 1;
            }
            if frame.symbol_address() == probe_outer as *mut c_void {
                probe_depth = length;
            }
            true
        });
        let reference = &reference[..length];
        last.clear();
        Some(match unwinder {
            // This unwinder stops where the C library begins.
            Unwinder::FramePointersOnly => {
                own.len() >= 2 && reference.windows(2).any(|frames| frames == &own[..2])
            }
            // All frames, from inside these functions outwards.
            _ => {
                is_complete && reference.ends_with(own) && reference.len() - own.len() < probe_depth
            }
        })
    };
    Thread::current(compare).flatten().unwrap_or(false)
}

/// Returns the name of the unwinder in use. For tests and benchmarks.
pub fn unwinder_name() -> &'static str {
    unwinder().name()
}

/// Walks the stack as a hook does, and copies the addresses from the caller's frame outwards.
/// Returns their number, and whether the stack is complete. For tests and benchmarks.
#[inline(never)]
pub fn stack(addresses: &mut [usize]) -> Option<(usize, bool)> {
    // Captured in this function, not in the closure, which may have a frame of its own.
    let here = registers::capture();
    Thread::current(|thread| {
        let inside = Inside::enter(thread)?;
        let last = inside.last_stack()?;
        let is_complete = walk_from(unwinder(), here, last, &inside);
        Some((last.copy_to(addresses).len(), is_complete))
    })
    .flatten()
}

/// The frames of a stack.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The registers of each frame, from the innermost outwards, and the instruction to return to.
    pub(crate) registers: Vec<Registers>,
    /// True if the last one is where the thread began.
    pub(crate) is_whole: bool,
}

/// Returns the frames of this thread's stack, from the caller's outwards. None if they are not
/// walked by an own unwinder.
#[inline(never)]
pub(crate) fn frames() -> Frames {
    let here = registers::capture();
    let walked = Thread::current(|thread| {
        let inside = Inside::enter(thread)?;
        let last = inside.last_stack()?;
        let is_whole = walk_from(unwinder(), here, last, &inside);
        let frames = last.frames.get(..last.length.get())?.iter().rev();
        let registers = frames.map(|frame| frame.get().registers);
        // The reference unwinder tells addresses alone.
        let registers = registers.filter(|registers| registers.stack_pointer != 0).collect();
        Some(Frames { registers, is_whole })
    });
    walked.flatten().unwrap_or_default()
}

/// Returns the hash of the stack from the caller's frame outwards, if a hook would look that up
/// instead of walking. For tests.
#[inline(never)]
pub fn stack_hash() -> Option<u64> {
    let here = registers::capture();
    Thread::current(|thread| {
        let inside = Inside::enter(thread)?;
        let last = inside.last_stack()?;
        is_in_use(Unwinder::FramePointers).then_some(())?;
        let chain = find_from(here, last, &inside, 0, |_, _, _| None::<()>).err().flatten()?;
        let is_stack = follow_from(here, chain, last, &inside) || {
            walk_from(unwinder(), here, last, &inside);
            is_along(chain, last)
        };
        is_stack.then_some(chain.hash.first())
    })
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwinders_agree_with_the_reference_on_any_thread() {
        assert!(!own_code::is_whole_module(), "a program has code of its own");
        modules::record_loaded(Moment::Initialiser);
        let check = || {
            let has_tables = cfg!(target_arch = "x86_64") && sys::HAS_UNWIND_INFO;
            assert!(agrees(Unwinder::Cfi) || !has_tables);
            // The workspace builds with frame pointers, unless the environment replaces its flags.
            let has_frame_pointers = std::env::var_os("RUSTFLAGS").is_none();
            // Chains in a program for musl end in a function that the reference leaves out.
            let has_frame_pointers = has_frame_pointers && !sys::THREADS_START_UNSEEN;
            assert!(agrees(Unwinder::FramePointersOnly) || !has_frame_pointers);
            assert!(agrees(Unwinder::FramePointers) || !(has_frame_pointers && has_tables));
        };
        check();
        std::thread::spawn(check).join().expect("unwinders agree on another thread");
    }

    #[test]
    fn chains_of_frame_pointers_end_where_the_thread_began() {
        if !agrees(Unwinder::FramePointersOnly) || sys::THREADS_START_UNSEEN {
            // Not run: the test program has no frame pointers, or musl's start of threads has none.
            return;
        }
        let last = LastStack::new();
        let own = sys::stack_bounds().expect("a thread has a stack");
        let is_complete = |own| match frame_pointers::walk_to_end(registers::capture(), own, &last)
        {
            ChainEnd::Known => true,
            ChainEnd::At(root) => last.is_root(root),
        };
        assert!(!is_complete(own));
        assert!(walk_by_frame_pointers_only(registers::capture(), own, &last));
        assert!(is_complete(own));
        // A chain that ends elsewhere is truncated.
        let here = registers::capture();
        assert!(!is_complete(StackBounds { high: here.frame_pointer + 512, ..own }));
    }

    #[test]
    fn each_unwinder_has_its_number() {
        for unwinder in [
            Unwinder::None,
            Unwinder::FramePointers,
            Unwinder::Cfi,
            Unwinder::FramePointersOnly,
            Unwinder::Backtrace,
        ] {
            assert_eq!(of_number(unwinder as u32), unwinder);
        }
    }
}

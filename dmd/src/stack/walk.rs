//! Call stacks: the return addresses from here outwards.
//!
//! A walk goes from frame to frame by rules, which come from call frame information or are known of frame pointers. What a
//! thread's last stack has in common with this one is verified instead of walked. What no rule describes, the reference walks.

mod rule;
mod rules;
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
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use self::frames::End;
use self::last::{LastStack, MAX_FRAMES, Registers};
use self::tally::Tally;
use super::thread::{self, Inside, Thread};
use crate::mem::sys::StackBounds;
use crate::sample::unwinder::Unwinder;

static UNWINDER: AtomicU8 = AtomicU8::new(0);

/// The unwinder in use.
#[inline]
pub(crate) fn unwinder() -> Unwinder {
    match UNWINDER.load(Relaxed) {
        1 => Unwinder::FramePointers,
        2 => Unwinder::Cfi,
        3 => Unwinder::FramePointersOnly,
        4 => Unwinder::Backtrace,
        _ => Unwinder::None,
    }
}

/// Finds out which unwinder serves this program: the one that is wished for, or else the first of these, if it agrees with the
/// reference. Not from a hook: the reference unwinder may take locks.
pub(crate) fn choose(wish: Option<Unwinder>) {
    modules::learn();
    let order = [Unwinder::FramePointers, Unwinder::Cfi, Unwinder::FramePointersOnly];
    let chosen = match wish {
        Some(Unwinder::Backtrace) => None,
        _ => wish.into_iter().chain(order).find(|unwinder| agrees(*unwinder)),
    };
    UNWINDER.store(chosen.unwrap_or(Unwinder::Backtrace) as u8, Relaxed);
}

/// Returns how many stacks all threads have walked.
pub(crate) fn tally() -> Tally {
    tally::sum(thread::met().map(|(number, _)| number))
}

/// Leaves the frames of this stack in the thread's last stack, without the one that this is inlined in and its caller.
#[inline(always)]
pub(crate) fn walk(inside: &Inside<'_>) {
    walk_from(unwinder(), registers::here(), inside);
}

#[inline(never)]
fn walk_from(unwinder: Unwinder, here: Registers, inside: &Inside<'_>) -> bool {
    let last = &inside.thread.last_stack;
    let is_whole = match (unwinder, inside.thread.bounds(inside)) {
        (Unwinder::FramePointers, Some(own)) => {
            frame_pointers::walk(here, own, last).unwrap_or_else(|| by_cfi(here, own, last))
        }
        (Unwinder::Cfi, Some(own)) => by_cfi(here, own, last),
        (Unwinder::FramePointersOnly, Some(own)) => by_frame_pointers_only(here, own, last),
        (Unwinder::Backtrace, _) => reference::walk(None, last),
        (Unwinder::None, _) => {
            // Not a walk: it is not known yet how.
            last.replace_by_addresses(&[]);
            return false;
        }
        (_, None) => {
            last.replace_by_addresses(&[]);
            false
        }
    };
    inside.thread.count_walk(is_whole);
    is_whole
}

#[inline(never)]
fn by_cfi(here: Registers, own: StackBounds, last: &LastStack) -> bool {
    let end = frames::walk(here, own, last, last::OWN_FRAMES);
    end == End::Outermost || (end == End::Odd && by_reference(last))
}

fn by_frame_pointers_only(here: Registers, own: StackBounds, last: &LastStack) -> bool {
    let root = frame_pointers::walk_to_end(here, own, last);
    // The chain ends where the C library starts the thread, always in the same frame: any other end is too early.
    if last.is_root(root) {
        return true;
    }
    let is_whole = by_reference(last);
    last.learn_root(root);
    is_whole
}

#[cold]
fn by_reference(last: &LastStack) -> bool {
    reference::walk(last.innermost(), last)
}

/// Whether this unwinder gives the same frames as the reference does, in code built as this program is.
fn agrees(unwinder: Unwinder) -> bool {
    std::hint::black_box(third as fn(Unwinder) -> bool)(unwinder)
}

#[inline(never)]
fn third(unwinder: Unwinder) -> bool {
    std::hint::black_box(second as fn(Unwinder) -> bool)(unwinder)
}

#[inline(never)]
fn second(unwinder: Unwinder) -> bool {
    std::hint::black_box(first as fn(Unwinder) -> bool)(unwinder)
}

#[inline(never)]
fn first(unwinder: Unwinder) -> bool {
    let compare = |thread: &Thread| {
        let inside = Inside::enter(thread)?;
        let here = registers::here();
        let bounds = thread.bounds(&inside)?;
        let is_whole = match unwinder {
            // Without help from the other where it fails.
            Unwinder::FramePointers => frame_pointers::walk(here, bounds, &thread.last_stack)?,
            _ => walk_from(unwinder, here, &inside),
        };
        let (mut own, mut reference) = ([0; MAX_FRAMES], [0; MAX_FRAMES]);
        let own = inside.thread.last_stack.copy_to(&mut own);
        let (mut length, mut outermost_test) = (0, 0);
        backtrace::trace(|frame| {
            if let Some(place) = reference.get_mut(length).filter(|_| !frame.ip().is_null()) {
                *place = frame.ip().addr();
                length += 1;
            }
            if frame.symbol_address() == third as *mut c_void {
                outermost_test = length;
            }
            true
        });
        let reference = &reference[..length];
        inside.thread.last_stack.forget();
        Some(match unwinder {
            // It stops where the C library begins.
            Unwinder::FramePointersOnly => {
                own.len() >= 2 && reference.windows(2).any(|frames| frames == &own[..2])
            }
            // All of it, from inside these functions on.
            _ => {
                is_whole && reference.ends_with(own) && reference.len() - own.len() < outermost_test
            }
        })
    };
    Thread::current(compare).flatten().unwrap_or(false)
}

/// For tests and benchmarks: the unwinder in use.
pub fn unwinder_name() -> &'static str {
    unwinder().name()
}

/// For tests and benchmarks: this stack as a hook would take it, the innermost frame, in the caller of this, first. How many
/// frames there are, and whether they reach the thread's outermost one.
#[inline(never)]
pub fn stack(addresses: &mut [usize]) -> Option<(usize, bool)> {
    // This function's frame is one of those that are left out, so it must be there: no call in place of the return.
    std::hint::black_box(taken(addresses))
}

#[inline(never)]
fn taken(addresses: &mut [usize]) -> Option<(usize, bool)> {
    // In this function itself, and not in the closure.
    let here = registers::here();
    Thread::current(|thread| {
        let inside = Inside::enter(thread)?;
        let is_whole = walk_from(unwinder(), here, &inside);
        Some((inside.thread.last_stack.copy_to(addresses).len(), is_whole))
    })
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwinders_agree_with_the_reference_on_any_thread() {
        modules::learn();
        assert!(agrees(Unwinder::Cfi));
        let built_with_frame_pointers = agrees(Unwinder::FramePointers);
        assert_eq!(agrees(Unwinder::FramePointersOnly), built_with_frame_pointers);
    }

    #[test]
    fn chains_of_frame_pointers_end_where_the_thread_began() {
        if !agrees(Unwinder::FramePointersOnly) {
            // Not run: this was built without frame pointers.
            return;
        }
        let last = LastStack::new();
        let own = crate::mem::sys::stack_bounds().expect("a thread has a stack");
        let end = || frame_pointers::walk_to_end(registers::here(), own, &last);
        assert!(!last.is_root(end()));
        assert!(by_frame_pointers_only(registers::here(), own, &last));
        assert!(last.is_root(end()));
        // A chain that ends elsewhere is not the whole stack.
        let here = registers::here();
        let short = StackBounds { high: here.frame_pointer + 512, ..own };
        assert!(!last.is_root(frame_pointers::walk_to_end(here, short, &last)));
    }
}

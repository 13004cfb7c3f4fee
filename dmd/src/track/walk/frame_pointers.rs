//! The walk along saved frame pointers, for programs that were built with them. Libraries were built by others, as they liked:
//! from the first frame of one on, call frame information leads further.

use super::frames::{self, End};
use super::last::{LastStack, Registers, retrace};
use super::modules;
use super::rule::WORD;
use crate::track::sys::{self, StackBounds};

/// Takes the stack. `false` if that did not lead to the thread's outermost frame.
#[inline(always)]
pub(super) fn walk(here: Registers, own: StackBounds, last: &LastStack) -> bool {
    let (low, high) = modules::own();
    let is_own = |code: usize| low <= code && code < high;
    let (count, Some(library)) = follow(here, own, last, is_own) else { return false };
    let outer = match last.find(library) {
        Some(met) if retrace(last.lasting(), met) == 0 => Some(met + 1),
        _ => library_frames(library, own, last),
    };
    outer.is_some_and(|outer| last.put_on(outer, count))
}

/// How many frames are left, by the rules of libraries. Usually they are those around the thread's first function.
#[cold]
#[inline(never)]
fn library_frames(library: Registers, own: StackBounds, last: &LastStack) -> Option<usize> {
    let end = frames::walk(library, own, last, 0);
    (end == End::Outermost).then(|| last.length.get())
}

/// Takes the stack by frame pointers alone, as far as they lead. Says where that is.
pub(super) fn walk_to_end(
    here: Registers,
    own: StackBounds,
    last: &LastStack,
) -> Option<(usize, usize)> {
    let (count, _) = follow(here, own, last, |_| true);
    last.put_on(0, count);
    last.outermost_of(count)
}

/// Follows the chain while the code is the program's. How many frames that were, and the first that is not.
#[inline(always)]
fn follow(
    here: Registers,
    own: StackBounds,
    last: &LastStack,
    is_own: impl Fn(usize) -> bool,
) -> (usize, Option<Registers>) {
    // Two words are read of each frame: the caller's frame pointer, and the return address.
    let highest = own.high - 2 * WORD;
    let is_frame = |frame: usize, above: usize| {
        above <= frame && frame <= highest && frame.is_multiple_of(WORD)
    };
    let mut frame = here.frame_pointer;
    let mut count = 0;
    if here.stack_pointer < own.low || !is_frame(frame, here.stack_pointer) {
        return (0, None);
    }
    loop {
        let (outer, code) = (sys::word_at(frame), sys::word_at(frame + WORD));
        if !is_own(code) {
            let stack_pointer = frame + 2 * WORD;
            let library = Registers { stack_pointer, instruction: code, frame_pointer: outer };
            return (count, Some(library));
        }
        if !last.note(&mut count, frame, code) || !is_frame(outer, frame + WORD) {
            return (count, None);
        }
        frame = outer;
    }
}

//! The walk along saved frame pointers, for programs that were built with them. Libraries were built by others, as they liked:
//! from the first frame of one on, call frame information advance further.

use super::frames::{self, End};
use super::last::{LastStack, verify};
use super::modules::{self, AddressRange};
use super::registers::Registers;
use super::rule::WORD;
use crate::mem::sys;
use crate::mem::sys::StackBounds;

/// Takes the stack, and says whether all of it was kept. `None` if frame pointers did not lead to the thread's outermost frame.
#[inline(always)]
pub(crate) fn walk(here: Registers, own: StackBounds, last: &LastStack) -> Option<bool> {
    let AddressRange { low, high } = modules::own_range();
    let length = high - low;
    let is_own = |code: usize| code.wrapping_sub(low) < length;
    let chain = follow_chain(here, own, last, is_own);
    if !chain.leaves_program {
        return chain.is_too_long.then(|| last.commit_addresses(0, chain.count));
    }
    let count = chain.count;
    let outer = match last.find(chain.end) {
        Some(index) if verify(last.reusable(), index) == 0 => index + 1,
        _ => library_frames(chain.end, own, last)?,
    };
    Some(last.commit_addresses(outer, count))
}

/// How many frames are left, by the rules of libraries. Usually they are those around the thread's first function.
#[cold]
#[inline(never)]
fn library_frames(library: Registers, own: StackBounds, last: &LastStack) -> Option<usize> {
    let end = frames::walk(library, own, last, 0);
    (end == End::Outermost).then(|| last.length.get())
}

/// Takes the stack by frame pointers alone, as far as they lead. Says where that is.
pub(crate) fn walk_to_end(here: Registers, own: StackBounds, last: &LastStack) -> Registers {
    let chain = follow_chain(here, own, last, |_| true);
    last.commit_addresses(0, chain.count);
    chain.end
}

/// Frames along frame pointers.
struct Chain {
    /// How many there are of the program's.
    count: usize,
    /// Where the chain leaves the program, or ends.
    end: Registers,
    /// Whether it leaves the program, rather than ends.
    leaves_program: bool,
    /// Whether it has more frames than are kept.
    is_too_long: bool,
}

/// Follows the chain while the code is the program's.
#[inline(always)]
fn follow_chain(
    here: Registers,
    own: StackBounds,
    last: &LastStack,
    is_own: impl Fn(usize) -> bool,
) -> Chain {
    // Two words are read of each frame: the caller's frame pointer, and the return address.
    let highest = own.high - 2 * WORD;
    // What is no frame but lies there is harmless to read, and has no code of the program's in it.
    let is_frame = |frame: usize, above: usize| above <= frame && frame <= highest;
    let mut frame = here.frame_pointer;
    let mut count = 0;
    if here.stack_pointer < own.low || !is_frame(frame, here.stack_pointer) {
        return Chain { count, end: here, leaves_program: false, is_too_long: false };
    }
    loop {
        let (outer, code) = (sys::word_at(frame), sys::word_at(frame + WORD));
        let end =
            Registers { stack_pointer: frame + 2 * WORD, instruction: code, frame_pointer: outer };
        if !is_own(code) {
            return Chain { count, end, leaves_program: true, is_too_long: false };
        }
        let is_too_long = !last.push_address(&mut count, code);
        if is_too_long || !is_frame(outer, frame + WORD) {
            return Chain { count, end, leaves_program: false, is_too_long };
        }
        frame = outer;
    }
}

//! The walk along saved frame pointers, for programs built with them.
//!
//! Libraries may have been built without. From the first library frame on, call frame information
//! leads further.

use super::frames::{self, End};
use super::last::{LastStack, verify};
use super::modules::{self, AddressRange};
use super::registers::Registers;
use super::rule::WORD;
use crate::mem::sys;
use crate::mem::sys::StackBounds;

/// Walks the stack, and returns whether it is complete. Returns `None` if frame pointers do not
/// lead to the thread's outermost frame.
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

/// Walks the remaining frames by the rules of libraries, and returns their number. They are usually
/// the frames around the thread's first function.
#[cold]
#[inline(never)]
fn library_frames(library: Registers, own: StackBounds, last: &LastStack) -> Option<usize> {
    let end = frames::walk(library, own, last, 0);
    (end == End::Outermost).then(|| last.length.get())
}

/// Walks the stack along frame pointers alone, and returns the registers at the end of the chain.
pub(crate) fn walk_to_end(here: Registers, own: StackBounds, last: &LastStack) -> Registers {
    let chain = follow_chain(here, own, last, |_| true);
    last.commit_addresses(0, chain.count);
    chain.end
}

/// A chain of frames along frame pointers.
struct Chain {
    /// The number of frames in the program.
    count: usize,
    /// The registers where the chain leaves the program, or ends.
    end: Registers,
    /// True if the chain leaves the program; false if it ends.
    leaves_program: bool,
    /// True if the chain has more frames than the last stack can store.
    is_too_long: bool,
}

/// Follows the chain while its code belongs to the program.
#[inline(always)]
fn follow_chain(
    here: Registers,
    own: StackBounds,
    last: &LastStack,
    is_own: impl Fn(usize) -> bool,
) -> Chain {
    // Each frame has two words to read: the caller's frame pointer, and the return address.
    let highest = own.high - 2 * WORD;
    // A value that is not a frame but lies in this range is readable, and its code is not the
    // program's.
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

//! The walk along saved frame pointers, for programs built with them.
//!
//! Libraries may have been built without. From the first library frame on, call frame information
//! leads further.

use super::frames::{self, End, Ended};
use super::last::{Frame, LastStack, MAX_FRAMES, OWN_FRAMES, Progress, Reuse};
use super::modules::{self, AddressRange};
use super::registers::Registers;
use super::rule::WORD;
use crate::mem::sys;
use crate::mem::sys::StackBounds;
use crate::stack::stack_cache::StackHash;

/// The offset of the return address from the frame pointer, in bytes.
const RETURN_ADDRESS: isize = WORD.cast_signed();

/// Walks the stack, and returns whether it is complete. Returns `None` if frame pointers do not
/// lead to the thread's outermost frame, or an opaque frame of the last stack is in the way.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn walk(here: Registers, own: StackBounds, last: &LastStack) -> Option<bool> {
    let AddressRange { low, high } = modules::own_range();
    let length = high - low;
    if here.stack_pointer < own.low {
        return None;
    }
    let mut progress = Progress::begin(here, last);
    let ended = loop {
        match progress.reuse() {
            Reuse::Part => {}
            Reuse::Rest => break Ended { end: End::Outermost, is_own: true },
            Reuse::TooMany => break Ended { end: End::Truncated, is_own: true },
            Reuse::UpToOpaque { .. } => return None,
        }
        let registers = progress.registers;
        // The frames that were taken over may end at one of a library.
        if registers.instruction.wrapping_sub(low) >= length {
            // Usually the frames around the thread's first function, which are known.
            let ended = frames::walk_on(&mut progress, own);
            if ended.end != End::Outermost {
                return None;
            }
            break ended;
        }
        // What is no frame but an address of the stack leads to code that is not the program's.
        let outer = outer_frame(registers, own)?;
        if !progress.push(Frame { registers, saved: registers.frame_pointer }) {
            break Ended { end: End::Truncated, is_own: true };
        }
        progress.registers = outer;
    };
    let is_complete = frames::commit(&progress, ended) == End::Outermost;
    if is_complete {
        last.find_around(|instruction| instruction.wrapping_sub(low) < length);
    }
    Some(is_complete)
}

/// The hash of a stack that was not walked.
pub(crate) struct Hashed {
    pub(crate) hash: StackHash,
    /// False if the stack has more frames than are stored.
    pub(crate) is_complete: bool,
}

/// Hashes the return addresses along frame pointers, then the known frames around the program.
/// Returns `None` if frame pointers do not lead to these.
///
/// A chain is followed from the inside in any case. To hash its addresses costs less than to
/// compare each with the last stack, and a stack whose site is known needs no more.
// Not inlined: in a function of its own, all values are in registers.
#[inline(never)]
pub(crate) fn hash(
    here: Registers,
    own: StackBounds,
    seed: StackHash,
    last: &LastStack,
) -> Option<Hashed> {
    const TURN: usize = 2;
    const { assert!(MAX_FRAMES.is_multiple_of(2 * TURN)) };
    let AddressRange { low, high } = modules::own_range();
    // Hidden from the compiler, which would subtract instead: an instruction more for each frame.
    let (below_low, length) = (std::hint::black_box(low.wrapping_neg()), high - low);
    let highest = own.high - 2 * WORD;
    let mut frame = here.frame_pointer;
    if here.stack_pointer < own.low || frame < here.stack_pointer {
        return None;
    }
    let mut hash = seed;
    for _ in 0..MAX_FRAMES / 2 / TURN {
        // Unrolled, which takes three instructions less for each frame.
        for _ in 0..TURN {
            let inner = link(frame, highest)?;
            if inner.instruction.wrapping_add(below_low) >= length {
                return hash_with_around(frame, inner, hash, last);
            }
            if inner.frame_pointer <= frame {
                return None;
            }
            frame = inner.frame_pointer;
            let outer = link(frame, highest)?;
            if outer.instruction.wrapping_add(below_low) >= length {
                let hash = hash.with_frame(inner.instruction);
                return hash_with_around(frame, outer, hash, last);
            }
            hash = hash.with_frames([inner.instruction, outer.instruction]);
            if outer.frame_pointer <= frame {
                return None;
            }
            frame = outer.frame_pointer;
        }
    }
    Some(Hashed { hash: hash.with_frame(usize::MAX), is_complete: false })
}

/// The two words at a frame pointer.
struct Link {
    frame_pointer: usize,
    instruction: usize,
}

/// Reads the words at this frame pointer, if it is not above `highest`.
#[cfg_attr(not(debug_assertions), inline(always))]
fn link(frame: usize, highest: usize) -> Option<Link> {
    if frame > highest {
        return None;
    }
    let frame_pointer = sys::word_at(frame);
    let instruction = sys::return_address_from::<RETURN_ADDRESS>(frame);
    Some(Link { frame_pointer, instruction })
}

/// Adds the frames around the program, where the chain ends with this link.
#[cfg_attr(not(debug_assertions), inline(always))]
fn hash_with_around(
    frame: usize,
    Link { frame_pointer, instruction }: Link,
    hash: StackHash,
    last: &LastStack,
) -> Option<Hashed> {
    let end = Registers { stack_pointer: frame + 2 * WORD, instruction, frame_pointer };
    let hash = last.hash_with_around(end, hash)?;
    Some(Hashed { hash, is_complete: true })
}

/// The end of a walk along frame pointers alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainEnd {
    /// The outer frames are the last stack's, which was complete.
    Known,
    /// The registers at the end of the chain.
    At(Registers),
}

/// Walks the stack along frame pointers alone, and commits the frames, which the next walk may not
/// reuse.
pub(crate) fn walk_to_end(here: Registers, own: StackBounds, last: &LastStack) -> ChainEnd {
    let mut progress = Progress::begin(here, last);
    let end = loop {
        if matches!(progress.reuse(), Reuse::Rest) {
            break ChainEnd::Known;
        }
        let registers = progress.registers;
        let outer = outer_frame(registers, own);
        let saved = if outer.is_some() { registers.frame_pointer } else { Frame::UNCHANGED };
        match outer.filter(|_| progress.push(Frame { registers, saved })) {
            Some(outer) => progress.registers = outer,
            None => break ChainEnd::At(registers),
        }
    };
    progress.commit(OWN_FRAMES);
    last.reusable.set(0);
    end
}

/// Returns the registers of the caller, if the frame pointer is an address of the stack above.
#[cfg_attr(not(debug_assertions), inline(always))]
fn outer_frame(registers: Registers, own: StackBounds) -> Option<Registers> {
    let frame = registers.frame_pointer;
    // Each frame has two words to read: the caller's frame pointer, and the return address.
    let is_inside = registers.stack_pointer <= frame && frame <= own.high - 2 * WORD;
    if !is_inside || !frame.is_multiple_of(WORD) {
        return None;
    }
    let frame_pointer = sys::word_at(frame);
    let instruction = sys::return_address_from::<RETURN_ADDRESS>(frame);
    Some(Registers { stack_pointer: frame + 2 * WORD, instruction, frame_pointer })
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;
    use crate::sample::unwinder::Unwinder;
    use crate::stack::walk::{agrees, registers};

    const SEED: StackHash = StackHash::EMPTY;

    /// Hashes and walks the stack some calls further in, along one of two paths.
    #[inline(never)]
    fn at_depth(depth: usize, path: u32, last: &LastStack) -> Found {
        let found = match (depth, path & 1) {
            (0, _) => found(last),
            (_, 0) => at_depth(depth - 1, path >> 1, last),
            _ => at_depth(depth - 1, path >> 1, last),
        };
        // The calls above are no tail calls: each has a frame.
        black_box(found)
    }

    struct Found {
        /// The hash before the walk, and whether it is of all frames.
        before: Option<(StackHash, bool)>,
        is_complete: Option<bool>,
        after: Option<(StackHash, bool)>,
    }

    #[inline(never)]
    fn found(last: &LastStack) -> Found {
        let own = sys::stack_bounds().expect("a thread has a stack");
        let here = registers::capture();
        let hash = || hash(here, own, SEED, last).map(|found| (found.hash, found.is_complete));
        let before = hash();
        let is_complete = walk(here, own, last);
        Found { before, is_complete, after: hash() }
    }

    #[test]
    fn equal_hashes_are_of_equal_stacks() {
        modules::record_loaded(false);
        if !agrees(Unwinder::FramePointers) {
            // Not run: `$RUSTFLAGS` has replaced the flags, or the system has no tables.
            return;
        }
        let last = LastStack::new();
        let first = at_depth(5, 0b01011, &last);
        assert_eq!((first.before, first.is_complete), (None, Some(true)), "nothing is known yet");
        let of_first = first.after.expect("its outer frames are known");
        assert!(of_first.1);
        for (depth, path) in [(5, 0b01010), (5, 0b11011), (4, 0b0101), (6, 0b001_011)] {
            let other = at_depth(depth, path, &last);
            assert!(other.before.is_some_and(|other| other.0 != of_first.0), "{depth} {path:b}");
            assert_eq!((other.before, other.is_complete), (other.after, Some(true)));
        }
        // Both calls of a path through the same lines are one stack.
        let paths = [0b01011, 0b01011].map(|path| at_depth(5, path, &last).before);
        assert_eq!(paths[0], paths[1]);
    }

    #[test]
    fn a_stack_with_more_frames_than_are_stored_has_a_hash() {
        modules::record_loaded(false);
        if !agrees(Unwinder::FramePointers) {
            // Not run: `$RUSTFLAGS` has replaced the flags, or the system has no tables.
            return;
        }
        let last = LastStack::new();
        at_depth(0, 0, &last);
        let [deep, deeper] = [0, 1].map(|path| at_depth(2 * MAX_FRAMES, path, &last));
        assert_eq!((deep.before, deep.is_complete), (deep.after, Some(false)));
        assert_eq!(deep.before.map(|(_, is_complete)| is_complete), Some(false));
        // They differ outside of the frames that are stored.
        assert_eq!(deep.before, deeper.before);
    }
}

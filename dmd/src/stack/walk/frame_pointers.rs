//! The walk along saved frame pointers, for programs built with them.
//!
//! Libraries may have been built without. From the first library frame on, call frame information
//! leads further.

use std::cell::Cell;

use super::frames::{self, End, Ended};
use super::last::{Frame, LastStack, MAX_FRAMES, OWN_FRAMES, Progress, Reuse};
use super::modules::{self, AddressRange};
use super::registers::Registers;
use super::rule::WORD;
use crate::mem::sys;
use crate::mem::sys::StackBounds;
use crate::stack::stack_cache::{StackHash, hidden_factors};

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
            let ended = frames::walk_on(&mut progress, Reuse::Part, own);
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

/// The hash of a chain of frame pointers. It is not known yet whether the chain leaves out frames.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    pub(crate) hash: StackHash,
    /// The number of its frames inside of those around the program.
    count: usize,
    /// False if the stack has more frames than are stored.
    pub(crate) is_complete: bool,
}

/// Hashes the return addresses along frame pointers up to the known frames around the program.
/// Returns `None` if frame pointers do not lead to these.
///
/// A chain is followed from the inside in any case. To hash its addresses costs less than to
/// compare each with the last stack, and a stack whose site is known needs no more. Its code is not
/// looked at: that of a known stack was, by [`follow`] or [`is_along`].
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn hash(
    here: Registers,
    own: StackBounds,
    seed: StackHash,
    last: &LastStack,
) -> Option<Chain> {
    const { assert!(MAX_FRAMES.is_multiple_of(8)) };
    // Frames lie below the end, where a chain leads to the frames around the program. If these are
    // not known, it has no end. Each frame has two words to read.
    let end = match last.innermost_around() {
        Some(inner) => inner.stack_pointer - 2 * WORD,
        None => own.high - 2 * WORD + 1,
    };
    // Frame pointers are distances from the end, negative as signed numbers. So one comparison of
    // unsigned numbers finds one that leads neither outwards nor to a place below the end.
    let mut frame = here.frame_pointer.wrapping_sub(end);
    if here.stack_pointer < own.low
        || here.frame_pointer < here.stack_pointer
        || frame.cast_signed() >= 0
    {
        return None;
    }
    let factors = hidden_factors();
    let mut hash = seed;
    // The number of frames that may follow.
    let mut left = MAX_FRAMES;
    let count = 'chain: {
        while left != 0 {
            let before = MAX_FRAMES - left;
            // Unrolled, which takes three instructions less for each pair of frames.
            for count in [before + 1, before + 3, before + 5, before + 7] {
                let inner = link(frame, end);
                if inner.frame <= frame {
                    hash = hash.with_frame(inner.instruction);
                    frame = inner.frame;
                    break 'chain Some(count);
                }
                let outer = link(inner.frame, end);
                hash = hash.with_frames_by([inner.instruction, outer.instruction], factors);
                frame = outer.frame;
                if outer.frame <= inner.frame {
                    break 'chain Some(count + 1);
                }
            }
            left -= 8;
        }
        None
    };
    match count {
        Some(_) if frame != 0 => None,
        Some(count) => Some(Chain { hash: last.hash_with_around(hash)?, count, is_complete: true }),
        None => {
            let hash = hash.with_frame(usize::MAX);
            Some(Chain { hash, count: MAX_FRAMES, is_complete: false })
        }
    }
}

/// The two words at a frame pointer.
struct Link {
    /// The next frame pointer, as a distance from the end of the chain.
    frame: usize,
    instruction: usize,
}

/// Reads the words at this distance from the end of the chain.
#[cfg_attr(not(debug_assertions), inline(always))]
fn link(frame: usize, end: usize) -> Link {
    let next = sys::word_beside::<0>(end, frame);
    let instruction = sys::return_address_beside::<RETURN_ADDRESS>(end, frame);
    Link { frame: next.wrapping_sub(end), instruction }
}

/// Walks a chain that was hashed, into the last stack: the frames around the program stay. Returns
/// false, and does not count a walk, if not all its code is the program's.
pub(crate) fn follow(here: Registers, own: StackBounds, chain: Chain, last: &LastStack) -> bool {
    let AddressRange { low, high } = modules::own_range();
    // Hidden from the compiler, which would subtract instead: an instruction more for each frame.
    let (below_low, length) = (std::hint::black_box(low.wrapping_neg()), high - low);
    let step = |slot: &Cell<Frame>, registers: Registers| {
        let is_of_program = registers.instruction.wrapping_add(below_low) < length;
        if !is_of_program || !is_inside(registers, own) {
            return None;
        }
        // Stored before the outer frame's registers are read, which take their place.
        slot.set(Frame { registers, saved: registers.frame_pointer });
        Some(frame_at(registers.frame_pointer))
    };
    chain.is_complete && last.replace_inside(here, chain.count, step)
}

/// Returns whether the last stack, which was walked by any unwinder, has the frames of this chain:
/// of one with more frames than are stored.
pub(crate) fn is_along(chain: Chain, last: &LastStack) -> bool {
    let AddressRange { low, high } = modules::own_range();
    let is_of_program = |address: usize| address.wrapping_sub(low) < high - low;
    let frames = last.frames.get(..last.length.get()).unwrap_or(&[]);
    !chain.is_complete
        && frames.len() == MAX_FRAMES
        && frames.iter().all(|frame| is_of_program(frame.get().address()))
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
    (is_inside(registers, own) && frame.is_multiple_of(WORD)).then(|| frame_at(frame))
}

/// Returns whether the frame pointer lies on the stack above.
#[cfg_attr(not(debug_assertions), inline(always))]
fn is_inside(registers: Registers, own: StackBounds) -> bool {
    let frame = registers.frame_pointer;
    // Each frame has two words to read: the caller's frame pointer, and the return address.
    registers.stack_pointer <= frame && frame <= own.high - 2 * WORD
}

/// Returns the registers of the frame that this frame pointer leads to.
#[cfg_attr(not(debug_assertions), inline(always))]
fn frame_at(frame: usize) -> Registers {
    let frame_pointer = sys::word_at(frame);
    let instruction = sys::return_address_from::<RETURN_ADDRESS>(frame);
    Registers { stack_pointer: frame + 2 * WORD, instruction, frame_pointer }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;
    use crate::sample::unwinder::Unwinder;
    use crate::stack::walk::{agrees, registers};

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
        let chain = || hash(here, own, StackHash::EMPTY, last);
        let of = |chain: Chain| (chain.hash, chain.is_complete);
        let before = chain();
        let is_complete = walk(here, own, last);
        let after = chain();
        let frames = || last.frames.iter().take(last.length.get() + 1).map(Cell::get);
        let walked: Vec<Frame> = frames().collect();
        if let Some(chain) = after {
            // A chain of the program's own code is followed to the same frames.
            last.interned.set(last.length.get());
            assert_eq!(follow(here, own, chain, last), chain.is_complete);
            assert!(chain.is_complete || is_along(chain, last));
            assert!(frames().eq(walked));
            assert_eq!(last.interned.get(), last.length.get());
        }
        Found { before: before.map(of), is_complete, after: after.map(of) }
    }

    #[test]
    fn equal_hashes_are_of_equal_stacks() {
        modules::record_loaded(modules::Moment::Initialiser);
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
        modules::record_loaded(modules::Moment::Initialiser);
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

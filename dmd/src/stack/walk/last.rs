//! The stack that a thread took last. Most of the next one is the same: what is still there is verified, not walked again.

use std::cell::Cell;

mod addresses;
mod frame;
#[cfg(test)]
mod tests;

pub(crate) use self::frame::Frame;
use super::registers::Registers;
use super::rule::WORD;
use crate::mem::sys;
use crate::stack::stack_cache::StackHash;

/// The number of innermost frames of a stack that are kept.
pub(crate) const MAX_FRAMES: usize = 128;

/// The last stack of a thread, the outermost frame first.
pub(crate) struct LastStack {
    pub(crate) frames: [Cell<Frame>; MAX_FRAMES],
    pub(crate) length: Cell<usize>,
    /// How many of the outermost frames the next walk may find again: all, if the stack is whole and the thread's own.
    pub(crate) reusable: Cell<usize>,
    /// The hash of the stack up to each frame, and of how many of the outermost frames it is known.
    pub(crate) hashes: [Cell<StackHash>; MAX_FRAMES],
    pub(crate) hashed: Cell<usize>,
    /// Indices of frames by their stack pointers: where a frame would be if it is in the last stack. What is wrong or out of
    /// date is found out by looking at the frame.
    index: [Cell<u8>; INDEX_SLOTS],
    /// The addresses that a walk along frame pointers has come by, the innermost first.
    addresses: [Cell<usize>; NEW_FRAMES],
    /// Where chains of frame pointers end on this thread.
    root: Cell<Option<Registers>>,
    /// The frames that a walk has come by that are not, or not yet known to be, in the last stack: the innermost first.
    new: [Cell<Frame>; NEW_FRAMES],
}

/// The innermost frames are the tracker's own and its hook's: they are left out.
pub(crate) const OWN_FRAMES: usize = 2;

const INDEX_SLOTS: usize = 256;
const _: () = assert!(MAX_FRAMES <= 1 << 8, "an index is a byte");

const NEW_FRAMES: usize = MAX_FRAMES + OWN_FRAMES;

const EMPTY_FRAME: Frame = Frame {
    registers: Registers { stack_pointer: 0, instruction: 0, frame_pointer: 0 },
    saved: Frame::UNCHANGED,
};

/// Stack pointers are aligned to 16 where functions are called.
#[inline(always)]
fn index_slot(registers: Registers) -> usize {
    (registers.stack_pointer >> 4) % INDEX_SLOTS
}

fn address_of_frame_pointer(frame: &Cell<Frame>) -> usize {
    frame.as_ptr().expose_provenance() + std::mem::offset_of!(Frame, registers.frame_pointer)
}

impl LastStack {
    pub(crate) const fn new() -> Self {
        LastStack {
            frames: [const { Cell::new(EMPTY_FRAME) }; MAX_FRAMES],
            length: Cell::new(0),
            reusable: Cell::new(0),
            hashes: [const { Cell::new(StackHash::EMPTY) }; MAX_FRAMES],
            hashed: Cell::new(0),
            index: [const { Cell::new(0) }; INDEX_SLOTS],
            addresses: [const { Cell::new(0) }; NEW_FRAMES],
            root: Cell::new(None),
            new: [const { Cell::new(EMPTY_FRAME) }; NEW_FRAMES],
        }
    }

    /// The frames that may be found again.
    #[inline(always)]
    pub(crate) fn reusable(&self) -> &[Cell<Frame>] {
        self.frames.get(..self.reusable.get()).unwrap_or(&[])
    }

    /// The index of the frame with these registers, if the last stack has one from which the walk may go on.
    #[inline(always)]
    pub(crate) fn find(&self, registers: Registers) -> Option<usize> {
        let index = usize::from(self.index.get(index_slot(registers))?.get());
        let frame = self.frames.get(index % MAX_FRAMES)?.get();
        // The stack pointer first: of a frame that is not in the last stack, it is another one.
        let is_it = frame.registers.stack_pointer == registers.stack_pointer
            && frame.registers.instruction == registers.instruction
            && frame.registers.frame_pointer == registers.frame_pointer
            && index < self.reusable.get()
            && !frame.is_opaque();
        is_it.then_some(index)
    }

    /// Keeps frames of the last stack among the new ones, unless there is no room.
    #[cold]
    pub(crate) fn push_reused(
        &self,
        count: &mut usize,
        outermost: usize,
        innermost: usize,
    ) -> bool {
        let frames = self.frames.get(outermost..=innermost).unwrap_or(&[]);
        let own = self.frames.as_ptr_range();
        let own = own.start.addr()..own.end.addr();
        frames.iter().rev().all(|frame| {
            let mut frame = frame.get();
            if own.contains(&frame.saved) {
                frame.saved = Frame::UNCHANGED;
            }
            self.push(count, frame)
        })
    }

    /// Keeps the next new frame, unless there is no room.
    #[inline(always)]
    pub(crate) fn push(&self, count: &mut usize, frame: Frame) -> bool {
        let Some(place) = self.new.get(*count) else { return false };
        place.set(frame);
        *count += 1;
        true
    }

    /// The walk is over: the stack is `same` frames of the one before and these new ones, without the innermost `skip`. Says
    /// whether there was room for all; otherwise the outermost are left out.
    #[inline(always)]
    pub(crate) fn commit(&self, same: usize, new: usize, skip: usize) -> bool {
        let new = new.saturating_sub(skip);
        let over = (same + new).saturating_sub(MAX_FRAMES);
        if over > 0 {
            self.drop_outermost(over, same);
        }
        let same = same.saturating_sub(over);
        let places = self.frames.get(same..).unwrap_or(&[]).iter();
        let own = skip.min(new);
        let frames = self.new.get(own..new).unwrap_or(&[]).iter().rev();
        let mut outer = self.frames.get(same.wrapping_sub(1));
        for ((index, place), frame) in (same..).zip(places).zip(frames) {
            let mut frame = frame.get();
            self.index_frame(frame.registers, index);
            if frame.saved == Frame::UNCHANGED
                && let Some(outer) = outer
            {
                frame.saved = address_of_frame_pointer(outer);
            }
            place.set(frame);
            outer = Some(place);
        }
        self.length.set((same + new).min(MAX_FRAMES));
        self.hashed.set(if over > 0 { 0 } else { self.hashed.get().min(same) });
        over == 0
    }

    #[inline(always)]
    fn index_frame(&self, registers: Registers, index: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "there are at most 256 frames")]
        if let Some(place) = self.index.get(index_slot(registers)) {
            place.set(index as u8);
        }
    }

    #[cold]
    fn drop_outermost(&self, over: usize, same: usize) {
        for (to, from) in (over..same).enumerate() {
            if let (Some(to), Some(from)) = (self.frames.get(to), self.frames.get(from)) {
                to.set(from.get());
            }
        }
    }

    /// Copies the addresses, the innermost first, as far as there is room.
    pub(crate) fn copy_to<'a>(&self, addresses: &'a mut [usize]) -> &'a [usize] {
        let frames = self.frames.get(..self.length.get()).unwrap_or(&[]);
        let length = frames.len().min(addresses.len());
        for (place, frame) in addresses.iter_mut().zip(frames.iter().rev()) {
            *place = frame.get().address();
        }
        addresses.get(..length).unwrap_or(&[])
    }

    /// So that the next walk finds nothing again.
    pub(crate) fn clear(&self) {
        self.length.set(0);
        self.reusable.set(0);
        self.hashed.set(0);
    }

    pub(crate) fn innermost(&self) -> Option<usize> {
        let innermost = self.frames.get(self.length.get().checked_sub(1)?)?;
        Some(innermost.get().address())
    }
}

/// Starting at frame `from`, which is where the walk has come to, how far outwards the frames are those of the last stack: the
/// index of the outermost of which it is verified.
///
/// A frame is verified if its inner one is and the two words by which that advance to it are what they were. All lie above the
/// stack pointer of a frame that the walk has come to, on the thread's own stack.
#[inline(always)]
pub(crate) fn verify(frames: &[Cell<Frame>], from: usize) -> usize {
    let pairs = frames.get(..=from).unwrap_or(&[]).windows(2).rev();
    let mut verified = from;
    for pair in pairs {
        let [outer, inner] = pair else { break };
        let (Registers { stack_pointer, instruction, frame_pointer }, inner) =
            (outer.get().registers, inner.get());
        if inner.is_opaque()
            || sys::word_at(stack_pointer.wrapping_sub(WORD)) != instruction
            || sys::word_at(inner.saved) != frame_pointer
        {
            break;
        }
        verified -= 1;
    }
    verified
}

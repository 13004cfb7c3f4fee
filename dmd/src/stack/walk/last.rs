//! The last stack of a thread, as a cache for its next walk.
//!
//! Consecutive stacks share most of their outer frames. A walk that meets such a frame verifies the
//! frames outside it, with two reads each, and does not walk them again.
#![expect(unsafe_code, reason = "zeros are an empty stack")]

use std::cell::Cell;

mod addresses;
mod frame;
#[cfg(test)]
mod tests;

pub(crate) use self::frame::Frame;
use super::memory::CopiedWords;
use super::registers::Registers;
use super::rule::WORD;
use crate::mem::lazy_slice::Zeroed;
use crate::mem::sys;
use crate::stack::stack_cache::StackHash;

/// The number of frames that a stack stores: the innermost ones.
pub(crate) const MAX_FRAMES: usize = 128;

/// The last stack of a thread, from the outermost frame inwards.
pub(crate) struct LastStack {
    pub(crate) frames: [Cell<Frame>; MAX_FRAMES],
    pub(crate) length: Cell<usize>,
    /// The number of outermost frames that the next walk may reuse: all, if the stack is complete
    /// and the thread's own, otherwise 0.
    pub(crate) reusable: Cell<usize>,
    /// The hash of the stack from the outermost frame up to each frame. The first `hashed` are
    /// valid.
    pub(crate) hashes: [Cell<StackHash>; MAX_FRAMES],
    pub(crate) hashed: Cell<usize>,
    /// A hash table from stack pointers to indices of frames. An entry may be stale, so a look-up
    /// checks the frame.
    index: [Cell<u8>; INDEX_SLOTS],
    /// The return addresses of the current walk along frame pointers, from the innermost frame
    /// outwards.
    addresses: [Cell<usize>; NEW_FRAMES],
    /// The registers where chains of frame pointers end on this thread; zeros if that is not known.
    root: Cell<Registers>,
    /// The frames of the current walk, from the innermost outwards, up to the first reused frame.
    new: [Cell<Frame>; NEW_FRAMES],
    /// The words of other stacks that the current walk has read.
    pub(crate) copied: CopiedWords,
}

/// The innermost frame is the function that captures the registers: the walk drops it. The hook's
/// other frames, which depend on the build, are dropped when a stack is interned.
pub(crate) const OWN_FRAMES: usize = 1;

const INDEX_SLOTS: usize = 256;
const _: () = assert!(MAX_FRAMES <= 1 << 8, "an index is a byte");

const NEW_FRAMES: usize = MAX_FRAMES + OWN_FRAMES;

const EMPTY_FRAME: Frame = Frame {
    registers: Registers { stack_pointer: 0, instruction: 0, frame_pointer: 0 },
    saved: Frame::UNCHANGED,
};

/// Stack pointers are aligned to 16 at calls.
#[inline(always)]
fn index_slot(registers: Registers) -> usize {
    (registers.stack_pointer >> 4) % INDEX_SLOTS
}

fn address_of_frame_pointer(frame: &Cell<Frame>) -> usize {
    frame.as_ptr().expose_provenance() + std::mem::offset_of!(Frame, registers.frame_pointer)
}

// SAFETY: all fields are cells of integers and of structs of integers.
unsafe impl Zeroed for LastStack {}

impl LastStack {
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        LastStack {
            frames: [const { Cell::new(EMPTY_FRAME) }; MAX_FRAMES],
            length: Cell::new(0),
            reusable: Cell::new(0),
            hashes: [const { Cell::new(StackHash::EMPTY) }; MAX_FRAMES],
            hashed: Cell::new(0),
            index: [const { Cell::new(0) }; INDEX_SLOTS],
            addresses: [const { Cell::new(0) }; NEW_FRAMES],
            root: Cell::new(EMPTY_FRAME.registers),
            new: [const { Cell::new(EMPTY_FRAME) }; NEW_FRAMES],
            copied: CopiedWords::new(),
        }
    }

    /// Returns the frames that may be reused.
    #[inline(always)]
    pub(crate) fn reusable(&self) -> &[Cell<Frame>] {
        self.frames.get(..self.reusable.get()).unwrap_or(&[])
    }

    /// Returns the index of the frame with these registers, if it may be reused.
    #[inline(always)]
    pub(crate) fn find(&self, registers: Registers) -> Option<usize> {
        let index = usize::from(self.index.get(index_slot(registers))?.get());
        let frame = self.frames.get(index % MAX_FRAMES)?.get();
        // The stack pointer first: if the frame is not in the last stack, it differs.
        let is_same = frame.registers.stack_pointer == registers.stack_pointer
            && frame.registers.instruction == registers.instruction
            && frame.registers.frame_pointer == registers.frame_pointer
            && index < self.reusable.get()
            && !frame.is_opaque();
        is_same.then_some(index)
    }

    /// Appends frames of the last stack to the current walk. Returns `false` if there is
    /// no space.
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

    /// Appends a frame to the current walk. Returns `false` if there is no space.
    #[inline(always)]
    pub(crate) fn push(&self, count: &mut usize, frame: Frame) -> bool {
        let Some(place) = self.new.get(*count) else { return false };
        place.set(frame);
        *count += 1;
        true
    }

    /// Ends a walk: the stack is `same` reused frames and the `walked` frames without the innermost
    /// `skip`. Returns whether all fit; otherwise the outermost are dropped.
    #[inline(always)]
    pub(crate) fn commit(&self, same: usize, walked: usize, skip: usize) -> bool {
        let new = walked.saturating_sub(skip);
        let over = (same + new).saturating_sub(MAX_FRAMES);
        if over > 0 {
            self.drop_outermost(over, same);
        }
        let same = same.saturating_sub(over);
        let places = self.frames.get(same..).unwrap_or(&[]).iter();
        let own = skip.min(walked);
        let frames = self.new.get(own..walked).unwrap_or(&[]).iter().rev();
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

    /// Copies the addresses from the innermost frame outwards, as many as fit.
    pub(crate) fn copy_to<'a>(&self, addresses: &'a mut [usize]) -> &'a [usize] {
        let frames = self.frames.get(..self.length.get()).unwrap_or(&[]);
        let length = frames.len().min(addresses.len());
        for (place, frame) in addresses.iter_mut().zip(frames.iter().rev()) {
            *place = frame.get().address();
        }
        addresses.get(..length).unwrap_or(&[])
    }

    /// Clears the stack, so that the next walk reuses nothing.
    pub(crate) fn clear(&self) {
        self.length.set(0);
        self.reusable.set(0);
        self.hashed.set(0);
    }

    /// Clears what an earlier thread has left.
    pub(crate) fn reset(&self) {
        self.clear();
        self.root.set(EMPTY_FRAME.registers);
        self.copied.clear();
    }

    pub(crate) fn innermost(&self) -> Option<usize> {
        let innermost = self.frames.get(self.length.get().checked_sub(1)?)?;
        Some(innermost.get().address())
    }
}

/// Verifies the frames of the last stack outwards from frame `from`, which the walk has reached.
/// Returns the index of the outermost verified frame.
///
/// A frame is verified if its inner frame is, and the inner frame's return address and saved frame
/// pointer still lead to it. Both words lie above the stack pointer of the frame that the walk has
/// reached, on the thread's own stack.
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

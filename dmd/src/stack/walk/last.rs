//! The stack that a thread took last. Most of the next one is the same: what is still there is verified, not walked again.

use std::cell::Cell;

use super::rule::WORD;
use crate::mem::sys;
use crate::stack::stack_cache::StackHash;

/// The number of innermost frames of a stack that are kept.
pub(crate) const MAX_FRAMES: usize = 128;

/// The registers by which a frame is known, and from which the rest of its stack follows: with the memory of the stack, all of
/// it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) stack_pointer: usize,
    pub(crate) instruction: usize,
    pub(crate) frame_pointer: usize,
}

/// A frame, and how its caller was come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) registers: Registers,
    /// Where the caller's frame pointer was read; or one of those below, which are no addresses.
    pub(crate) saved: usize,
}

impl Frame {
    /// The frame pointer was left as it was. In a last stack it is instead the address of the caller's in that stack, where
    /// of course it is what it was: so every frame is retraced alike.
    pub(crate) const UNCHANGED: usize = 0;

    /// The way from this frame is not to be retraced: it depends on more than its registers and two words.
    pub(crate) const OPAQUE: usize = 1;

    /// So is the way from a frame that was interrupted, by a signal or by this walk: its code is looked up otherwise.
    pub(crate) const INTERRUPTED: usize = 2;

    /// The address in the code.
    #[inline]
    pub(crate) fn address(self) -> usize {
        self.registers.instruction
    }

    #[inline(always)]
    pub(crate) fn is_opaque(self) -> bool {
        self.saved & (Frame::OPAQUE | Frame::INTERRUPTED) != 0
    }

    #[inline(always)]
    pub(crate) fn is_interrupted(self) -> bool {
        self.saved == Frame::INTERRUPTED
    }
}

/// The last stack of a thread, the outermost frame first.
pub(crate) struct LastStack {
    pub(crate) frames: [Cell<Frame>; MAX_FRAMES],
    pub(crate) length: Cell<usize>,
    /// How many of the outermost frames the next walk may find again: all, if the stack is whole and the thread's own.
    pub(crate) lasting: Cell<usize>,
    /// The hash of the stack up to each frame, and of how many of the outermost frames it is known.
    pub(crate) hashes: [Cell<StackHash>; MAX_FRAMES],
    pub(crate) hashed: Cell<usize>,
    /// Indices of frames by their stack pointers: where a frame would be if it is in the last stack. What is wrong or out of
    /// date is found out by looking at the frame.
    places: [Cell<u8>; PLACES],
    /// The addresses that a walk along frame pointers has come by, the innermost first.
    addresses: [Cell<usize>; FRESH],
    /// Where chains of frame pointers end on this thread.
    root: Cell<Option<Registers>>,
    /// The frames that a walk has come by that are not, or not yet known to be, in the last stack: the innermost first.
    fresh: [Cell<Frame>; FRESH],
}

/// The innermost frames are the tracker's own and its hook's: they are left out.
pub(crate) const OWN_FRAMES: usize = 2;

/// The C library has no more frames than these around a thread.
const NEAR_ROOT: usize = 4;

const PLACES: usize = 256;
const _: () = assert!(MAX_FRAMES <= 1 << 8, "an index is a byte");

const FRESH: usize = MAX_FRAMES + OWN_FRAMES;

const NOTHING: Frame = Frame {
    registers: Registers { stack_pointer: 0, instruction: 0, frame_pointer: 0 },
    saved: Frame::UNCHANGED,
};

/// Stack pointers are aligned to 16 where functions are called.
#[inline(always)]
fn place(registers: Registers) -> usize {
    (registers.stack_pointer >> 4) % PLACES
}

fn address_of_frame_pointer(frame: &Cell<Frame>) -> usize {
    frame.as_ptr().expose_provenance() + std::mem::offset_of!(Frame, registers.frame_pointer)
}

impl LastStack {
    pub(crate) const fn new() -> Self {
        LastStack {
            frames: [const { Cell::new(NOTHING) }; MAX_FRAMES],
            length: Cell::new(0),
            lasting: Cell::new(0),
            hashes: [const { Cell::new(StackHash::NOTHING) }; MAX_FRAMES],
            hashed: Cell::new(0),
            places: [const { Cell::new(0) }; PLACES],
            addresses: [const { Cell::new(0) }; FRESH],
            root: Cell::new(None),
            fresh: [const { Cell::new(NOTHING) }; FRESH],
        }
    }

    /// The frames that may be found again.
    #[inline(always)]
    pub(crate) fn lasting(&self) -> &[Cell<Frame>] {
        self.frames.get(..self.lasting.get()).unwrap_or(&[])
    }

    /// The index of the frame with these registers, if the last stack has one from which the walk may go on.
    #[inline(always)]
    pub(crate) fn find(&self, registers: Registers) -> Option<usize> {
        let index = usize::from(self.places.get(place(registers))?.get());
        let frame = self.frames.get(index % MAX_FRAMES)?.get();
        // The stack pointer first: of a frame that is not in the last stack, it is another one.
        let is_it = frame.registers.stack_pointer == registers.stack_pointer
            && frame.registers.instruction == registers.instruction
            && frame.registers.frame_pointer == registers.frame_pointer
            && index < self.lasting.get()
            && !frame.is_opaque();
        is_it.then_some(index)
    }

    /// Keeps frames of the last stack among the fresh ones, unless there is no room.
    #[cold]
    pub(crate) fn keep_again(&self, count: &mut usize, outermost: usize, innermost: usize) -> bool {
        let frames = self.frames.get(outermost..=innermost).unwrap_or(&[]);
        let own = self.frames.as_ptr_range();
        let own = own.start.addr()..own.end.addr();
        frames.iter().rev().all(|frame| {
            let mut frame = frame.get();
            if own.contains(&frame.saved) {
                frame.saved = Frame::UNCHANGED;
            }
            self.keep(count, frame)
        })
    }

    /// Keeps the next fresh frame, unless there is no room.
    #[inline(always)]
    pub(crate) fn keep(&self, count: &mut usize, frame: Frame) -> bool {
        let Some(place) = self.fresh.get(*count) else { return false };
        place.set(frame);
        *count += 1;
        true
    }

    /// The walk is over: the stack is `same` frames of the one before and these fresh ones, without the innermost `skip`. Says
    /// whether there was room for all; otherwise the outermost are left out.
    #[inline(always)]
    pub(crate) fn replace(&self, same: usize, fresh: usize, skip: usize) -> bool {
        let new = fresh.saturating_sub(skip);
        let over = (same + new).saturating_sub(MAX_FRAMES);
        if over > 0 {
            self.drop_outermost(over, same);
        }
        let same = same.saturating_sub(over);
        let places = self.frames.get(same..).unwrap_or(&[]).iter();
        let own = skip.min(fresh);
        let frames = self.fresh.get(own..fresh).unwrap_or(&[]).iter().rev();
        let mut outer = self.frames.get(same.wrapping_sub(1));
        for ((index, place), frame) in (same..).zip(places).zip(frames) {
            let mut frame = frame.get();
            self.note_place(frame.registers, index);
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
    fn note_place(&self, registers: Registers, index: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "there are at most 256 frames")]
        if let Some(place) = self.places.get(place(registers)) {
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
    pub(crate) fn forget(&self) {
        self.length.set(0);
        self.lasting.set(0);
        self.hashed.set(0);
    }

    pub(crate) fn innermost(&self) -> Option<usize> {
        let innermost = self.frames.get(self.length.get().checked_sub(1)?)?;
        Some(innermost.get().address())
    }

    /// Notes the next address along the frame pointers, unless there is no room.
    #[inline(always)]
    pub(crate) fn note(&self, count: &mut usize, address: usize) -> bool {
        let Some(place) = self.addresses.get(*count) else { return false };
        place.set(address);
        *count += 1;
        true
    }

    /// The walk along frame pointers is over: the stack is so many frames of the one before, and what was noted on top, without
    /// the tracker's own frame. Says whether there was room for all.
    #[inline(always)]
    pub(crate) fn put_on(&self, outer: usize, noted: usize) -> bool {
        let noted = self.addresses.get(1..noted).unwrap_or(&[]);
        let length = outer + noted.len();
        if length > MAX_FRAMES {
            self.cut(outer, noted);
            return false;
        }
        let frames = self.frames.get(outer..).unwrap_or(&[]).iter();
        let differs = |(frame, code): (&Cell<Frame>, &Cell<usize>)| {
            frame.get().registers.instruction != code.get()
        };
        let same = frames.zip(noted.iter().rev()).position(differs).unwrap_or(noted.len());
        let known = self.length.get().min(outer + same);
        let new = noted.iter().rev().skip(known.saturating_sub(outer));
        for (place, code) in self.frames.get(known..).unwrap_or(&[]).iter().zip(new) {
            // Nobody looks at the rest of a frame that does not last.
            let mut frame = place.get();
            frame.registers.instruction = code.get();
            place.set(frame);
        }
        self.length.set(length);
        self.lasting.set(self.lasting.get().min(outer));
        self.hashed.set(self.hashed.get().min(known));
        true
    }

    #[cold]
    fn cut(&self, outer: usize, noted: &[Cell<usize>]) {
        let mut addresses = [0; MAX_FRAMES];
        let outer = self.frames.get(..outer).unwrap_or(&[]).iter().rev();
        let all = noted.iter().map(Cell::get).chain(outer.map(|frame| frame.get().address()));
        for (place, address) in addresses.iter_mut().zip(all) {
            *place = address;
        }
        self.replace_by_addresses(&addresses);
    }

    /// Whether all of this thread's chains of frame pointers end there.
    pub(crate) fn is_root(&self, end: Registers) -> bool {
        self.root.get() == Some(end)
    }

    /// The chain of frame pointers ended there, and this is the whole stack: if it is close to the thread's beginning, all
    /// chains of the thread should end there.
    pub(crate) fn learn_root(&self, end: Registers) {
        let outermost = self.frames.get(..self.length.get().min(NEAR_ROOT)).unwrap_or(&[]);
        if outermost.iter().any(|frame| frame.get().address() == end.instruction) {
            self.root.set(Some(end));
        }
    }

    /// A stack of which only the addresses are known, the innermost first.
    pub(crate) fn replace_by_addresses(&self, addresses: &[usize]) {
        for (place, address) in self.frames.iter().zip(addresses.iter().rev()) {
            let registers = Registers { instruction: *address, ..NOTHING.registers };
            place.set(Frame { registers, saved: Frame::OPAQUE });
        }
        self.length.set(addresses.len().min(MAX_FRAMES));
        self.lasting.set(0);
        self.hashed.set(0);
    }
}

/// Starting at frame `from`, which is where the walk has come to, how far outwards the frames are those of the last stack: the
/// index of the outermost of which it is certain.
///
/// A frame is certain if its inner one is and the two words by which that leads to it are what they were. All lie above the
/// stack pointer of a frame that the walk has come to, on the thread's own stack.
#[inline(always)]
pub(crate) fn retrace(frames: &[Cell<Frame>], from: usize) -> usize {
    let pairs = frames.get(..=from).unwrap_or(&[]).windows(2).rev();
    let mut certain = from;
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
        certain -= 1;
    }
    certain
}

#[cfg(test)]
mod tests;

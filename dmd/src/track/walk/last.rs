//! The stack that a thread took last. Most of the next one is the same: what is still there is verified, not walked again.

use std::cell::Cell;
use std::hint::select_unpredictable;

use super::rule::WORD;
use crate::track::sys;
use crate::track::thread::MAX_FRAMES;

/// The registers by which a frame is known, and from which the rest of its stack follows: with the memory of the stack, all of
/// it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(super) stack_pointer: usize,
    pub(super) instruction: usize,
    pub(super) frame_pointer: usize,
}

/// A frame, and how its caller was come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(super) registers: Registers,
    /// Where the caller's frame pointer was read; or one of those below, which are no addresses.
    pub(super) saved: usize,
}

impl Frame {
    /// The frame pointer was left as it was.
    pub(super) const UNCHANGED: usize = 0;

    /// The way from this frame is not to be retraced: it depends on more than its registers and two words.
    pub(super) const OPAQUE: usize = 1;

    /// So is the way from a frame that was interrupted, by a signal or by this walk: its code is looked up otherwise.
    pub(super) const INTERRUPTED: usize = 2;

    /// The address in the code.
    #[inline]
    pub(crate) fn address(self) -> usize {
        self.registers.instruction
    }

    #[inline(always)]
    pub(super) fn is_opaque(self) -> bool {
        self.saved & (Frame::OPAQUE | Frame::INTERRUPTED) != 0
    }

    #[inline(always)]
    pub(super) fn is_interrupted(self) -> bool {
        self.saved == Frame::INTERRUPTED
    }
}

/// The last stack of a thread, the outermost frame first.
pub(crate) struct LastStack {
    pub(crate) frames: [Cell<Frame>; MAX_FRAMES],
    pub(crate) length: Cell<usize>,
    /// How many of the outermost frames the next walk may find again: all, if the stack is whole and the thread's own.
    pub(super) lasting: Cell<usize>,
    /// The number of each prefix, in the interner's count, and of how many of the outermost frames it is known.
    pub(crate) numbers: [Cell<u32>; MAX_FRAMES],
    pub(crate) numbered: Cell<usize>,
    /// Where chains of frame pointers end on this thread.
    root: Cell<Option<Registers>>,
    /// The frames that a walk has come by that are not, or not yet known to be, in the last stack: the innermost first.
    fresh: [Cell<Frame>; FRESH],
}

/// The innermost frames are the tracker's own and its hook's: they are left out.
pub(super) const OWN_FRAMES: usize = 2;

/// The C library has no more frames than these around a thread.
const NEAR_ROOT: usize = 4;

const FRESH: usize = MAX_FRAMES + OWN_FRAMES;

const NOTHING: Frame = Frame {
    registers: Registers { stack_pointer: 0, instruction: 0, frame_pointer: 0 },
    saved: Frame::UNCHANGED,
};

impl LastStack {
    pub(crate) const fn new() -> Self {
        LastStack {
            frames: [const { Cell::new(NOTHING) }; MAX_FRAMES],
            length: Cell::new(0),
            lasting: Cell::new(0),
            numbers: [const { Cell::new(0) }; MAX_FRAMES],
            numbered: Cell::new(0),
            root: Cell::new(None),
            fresh: [const { Cell::new(NOTHING) }; FRESH],
        }
    }

    /// The frames that may be found again.
    #[inline(always)]
    pub(super) fn lasting(&self) -> &[Cell<Frame>] {
        self.frames.get(..self.lasting.get()).unwrap_or(&[])
    }

    /// Keeps the next fresh frame, unless there is no room.
    #[inline(always)]
    pub(super) fn keep(&self, count: &mut usize, frame: Frame) -> bool {
        let Some(place) = self.fresh.get(*count) else { return false };
        place.set(frame);
        *count += 1;
        true
    }

    /// The walk is over: the stack is `same` frames of the one before and these fresh ones. Says whether there was room for
    /// all; otherwise the outermost are left out.
    #[inline(always)]
    pub(super) fn replace(&self, same: usize, fresh: usize) -> bool {
        let new = fresh.saturating_sub(OWN_FRAMES);
        let over = (same + new).saturating_sub(MAX_FRAMES);
        if over > 0 {
            self.drop_outermost(over, same);
        }
        let same = same.saturating_sub(over);
        let places = self.frames.get(same..).unwrap_or(&[]).iter();
        let own = OWN_FRAMES.min(fresh);
        let frames = self.fresh.get(own..fresh).unwrap_or(&[]).iter().rev();
        for (place, frame) in places.zip(frames) {
            place.set(frame.get());
        }
        self.length.set((same + new).min(MAX_FRAMES));
        self.numbered.set(if over > 0 { 0 } else { self.numbered.get().min(same) });
        over == 0
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
    pub(super) fn copy_to<'a>(&self, addresses: &'a mut [usize]) -> &'a [usize] {
        let frames = self.frames.get(..self.length.get()).unwrap_or(&[]);
        let length = frames.len().min(addresses.len());
        for (place, frame) in addresses.iter_mut().zip(frames.iter().rev()) {
            *place = frame.get().address();
        }
        addresses.get(..length).unwrap_or(&[])
    }

    /// So that the next walk finds nothing again.
    pub(super) fn forget(&self) {
        self.length.set(0);
        self.lasting.set(0);
        self.numbered.set(0);
    }

    pub(super) fn innermost(&self) -> Option<usize> {
        let innermost = self.frames.get(self.length.get().checked_sub(1)?)?;
        Some(innermost.get().address())
    }

    pub(super) fn outermost(&self) -> Option<Registers> {
        (self.length.get() > 0).then(|| self.frames.first().map(|frame| frame.get().registers))?
    }

    /// Whether this stack ends in the same frame as the thread's others.
    pub(super) fn ends_in_root(&self) -> bool {
        let is_root = self.root.get().is_some() && self.outermost() == self.root.get();
        if is_root {
            self.lasting.set(self.length.get());
        }
        is_root
    }

    /// The chain of frame pointers ended there, and this is the whole stack: if it is close to the thread's beginning, all
    /// chains of the thread should end there.
    pub(super) fn learn_root(&self, end: Option<Registers>) {
        let Some(end) = end else { return };
        let length = self.length.get();
        let outermost = self.frames.get(..length.min(NEAR_ROOT)).unwrap_or(&[]);
        if outermost.iter().any(|frame| frame.get().address() == end.instruction) {
            self.root.set(Some(end));
        }
    }

    /// A stack of which only the addresses are known, the innermost first.
    pub(super) fn replace_by_addresses(&self, addresses: &[usize]) {
        for (place, address) in self.frames.iter().zip(addresses.iter().rev()) {
            let registers = Registers { instruction: *address, ..NOTHING.registers };
            place.set(Frame { registers, saved: Frame::OPAQUE });
        }
        self.length.set(addresses.len().min(MAX_FRAMES));
        self.lasting.set(0);
        self.numbered.set(0);
    }
}

/// Starting at frame `from`, which is where the walk has come to, how far outwards the frames are those of the last stack: the
/// index of the outermost of which it is certain.
///
/// A frame is certain if its inner one is and the two words by which that leads to it are what they were. All lie above the
/// stack pointer of a frame that the walk has come to, on the thread's own stack.
#[inline(always)]
pub(super) fn retrace(frames: &[Cell<Frame>], from: usize) -> usize {
    let mut inner = from;
    let Some(mut frame) = frames.get(from).map(Cell::get) else { return from };
    while let Some(outer) = inner.checked_sub(1).and_then(|outer| frames.get(outer)) {
        if frame.is_opaque() {
            break;
        }
        let unchanged = outer.as_ptr().addr() + std::mem::offset_of!(Frame, registers.frame_pointer);
        // Which of the two differs from frame to frame: a jump would be guessed wrongly too often.
        let saved = select_unpredictable(frame.saved == Frame::UNCHANGED, unchanged, frame.saved);
        let registers = outer.get().registers;
        let differs = (sys::word_at(registers.stack_pointer.wrapping_sub(WORD)) ^ registers.instruction)
            | (sys::word_at(saved) ^ registers.frame_pointer);
        if differs != 0 {
            break;
        }
        frame = outer.get();
        inner -= 1;
    }
    inner
}

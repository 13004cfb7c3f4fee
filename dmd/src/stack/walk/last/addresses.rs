//! Last stacks of addresses alone: from a walk along frame pointers, or from the reference unwinder.

use std::cell::Cell;

use super::{EMPTY_FRAME, Frame, LastStack, MAX_FRAMES};
use crate::stack::walk::registers::Registers;

/// The C library has at most this many frames outside a thread's first function.
const NEAR_ROOT: usize = 4;

impl LastStack {
    /// Notes the next address along the frame pointers, unless there is no room.
    #[inline(always)]
    pub(crate) fn push_address(&self, count: &mut usize, address: usize) -> bool {
        let Some(place) = self.addresses.get(*count) else { return false };
        place.set(address);
        *count += 1;
        true
    }

    /// The walk along frame pointers is over: the stack is so many frames of the one before, and what was pushed on top, without
    /// the tracker's own frame. Says whether there was room for all.
    #[inline(always)]
    pub(crate) fn commit_addresses(&self, outer: usize, pushed: usize) -> bool {
        let pushed = self.addresses.get(1..pushed).unwrap_or(&[]);
        let length = outer + pushed.len();
        if length > MAX_FRAMES {
            self.commit_truncated(outer, pushed);
            return false;
        }
        let frames = self.frames.get(outer..).unwrap_or(&[]).iter();
        let differs = |(frame, code): (&Cell<Frame>, &Cell<usize>)| {
            frame.get().registers.instruction != code.get()
        };
        let same = frames.zip(pushed.iter().rev()).position(differs).unwrap_or(pushed.len());
        let known = self.length.get().min(outer + same);
        let new = pushed.iter().rev().skip(known.saturating_sub(outer));
        for (place, code) in self.frames.get(known..).unwrap_or(&[]).iter().zip(new) {
            // Nobody looks at the rest of a frame that does not last.
            let mut frame = place.get();
            frame.registers.instruction = code.get();
            place.set(frame);
        }
        self.length.set(length);
        self.reusable.set(self.reusable.get().min(outer));
        self.hashed.set(self.hashed.get().min(known));
        true
    }

    #[cold]
    fn commit_truncated(&self, outer: usize, pushed: &[Cell<usize>]) {
        let mut addresses = [0; MAX_FRAMES];
        let outer = self.frames.get(..outer).unwrap_or(&[]).iter().rev();
        let all = pushed.iter().map(Cell::get).chain(outer.map(|frame| frame.get().address()));
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
    pub(crate) fn set_root(&self, end: Registers) {
        let outermost = self.frames.get(..self.length.get().min(NEAR_ROOT)).unwrap_or(&[]);
        if outermost.iter().any(|frame| frame.get().address() == end.instruction) {
            self.root.set(Some(end));
        }
    }

    /// A stack of which only the addresses are known, the innermost first.
    pub(crate) fn replace_by_addresses(&self, addresses: &[usize]) {
        for (place, address) in self.frames.iter().zip(addresses.iter().rev()) {
            let registers = Registers { instruction: *address, ..EMPTY_FRAME.registers };
            place.set(Frame { registers, saved: Frame::OPAQUE });
        }
        self.length.set(addresses.len().min(MAX_FRAMES));
        self.reusable.set(0);
        self.hashed.set(0);
    }
}

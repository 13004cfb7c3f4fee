//! Last stacks of addresses alone: from a walk along frame pointers, or from the reference
//! unwinder.

use std::cell::Cell;

use super::{EMPTY_FRAME, Frame, LastStack, MAX_FRAMES};
use crate::stack::walk::registers::Registers;

/// The C library has at most this many frames outside a thread's first function.
const NEAR_ROOT: usize = 4;

impl LastStack {
    /// Appends a return address to the current walk along frame pointers. Returns `false` if there
    /// is no space.
    #[inline(always)]
    pub(crate) fn push_address(&self, count: &mut usize, address: usize) -> bool {
        let Some(place) = self.addresses.get(*count) else { return false };
        place.set(address);
        *count += 1;
        true
    }

    /// Ends a walk along frame pointers: the stack is the `outer` outermost frames of the last
    /// stack and the pushed addresses. Returns whether all fit.
    #[inline(always)]
    pub(crate) fn commit_addresses(&self, outer: usize, pushed: usize) -> bool {
        let pushed = self.addresses.get(..pushed).unwrap_or(&[]);
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
        let unchanged = self.length.get().min(outer + same);
        let new = pushed.iter().rev().skip(unchanged.saturating_sub(outer));
        for (place, code) in self.frames.get(unchanged..).unwrap_or(&[]).iter().zip(new) {
            // The other fields are not read: the frame is not reusable.
            let mut frame = place.get();
            frame.registers.instruction = code.get();
            place.set(frame);
        }
        self.length.set(length);
        self.reusable.set(self.reusable.get().min(outer));
        self.hashed.set(self.hashed.get().min(unchanged));
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

    /// Returns whether all chains of frame pointers on this thread end at these registers.
    pub(crate) fn is_root(&self, end: Registers) -> bool {
        end != EMPTY_FRAME.registers && self.root.get() == end
    }

    /// Stores the end of a complete chain, if it is close to the thread's first function. All
    /// chains of the thread should then end there.
    pub(crate) fn set_root(&self, end: Registers) {
        let outermost = self.frames.get(..self.length.get().min(NEAR_ROOT)).unwrap_or(&[]);
        if outermost.iter().any(|frame| frame.get().address() == end.instruction) {
            self.root.set(end);
        }
    }

    /// Replaces the stack by return addresses alone, from the innermost frame outwards.
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

//! The outer ends of chains of frame pointers, and last stacks of addresses alone: from the
//! reference unwinder.

use super::{EMPTY_FRAME, Frame, LastStack, MAX_FRAMES, compare};
use crate::stack::stack_cache::StackHash;
use crate::stack::walk::registers::Registers;

/// The C library has at most this many frames outside a thread's first function.
const NEAR_ROOT: usize = 4;

impl LastStack {
    /// Finds the frames around the program: of the C library that has started the thread, and
    /// outside of these perhaps the program's own first function.
    #[cold]
    pub(crate) fn find_around(&self, is_of_program: impl Fn(usize) -> bool) {
        let mut frames = self.reusable().iter().map(|frame| frame.get().address()).enumerate();
        let first = frames.find(|(_, address)| !is_of_program(*address));
        let inner = first.and_then(|_| frames.find(|(_, address)| is_of_program(*address)));
        let mut around = inner.map_or(0, |(index, _)| index);
        let frames = self.frames.get(..around).unwrap_or(&[]);
        if frames.iter().any(|frame| frame.get().is_opaque()) {
            around = 0;
        }
        self.around.set(around);
        let frames = self.frames.get(..around).unwrap_or(&[]);
        let addresses = frames.iter().rev().map(|frame| frame.get().address());
        // The thread's number is in the hash of the other frames.
        let hash = addresses.fold(StackHash::of_thread(0), StackHash::with_frame);
        self.hash_around.set(hash);
    }

    /// Adds the frames around the program to the hash of a stack. Returns `None` if the stack does
    /// not lead there by these registers.
    #[inline(always)]
    pub(crate) fn hash_with_around(&self, end: Registers, hash: StackHash) -> Option<StackHash> {
        let mut around = self.reusable().get(..self.around.get())?.iter();
        let mut inner = around.next_back()?;
        if inner.get().registers != end {
            return None;
        }
        for outer in around.rev() {
            if !compare(outer, inner).is_equal() {
                return None;
            }
            inner = outer;
        }
        Some(hash.with_outer(self.hash_around.get()))
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
        self.interned.set(0);
        self.around.set(0);
        self.own.set(0);
    }
}

//! The outer ends of chains of frame pointers, and last stacks of addresses alone: from the
//! reference unwinder.

use std::cell::Cell;

use super::{EMPTY_FRAME, Frame, LastStack, MAX_FRAMES, OWN_FRAMES, compare};
use crate::mem::sys::Comparison;
use crate::stack::stack_cache::StackHash;
use crate::stack::walk::registers::Registers;
use crate::stack::walk::rule::WORD;

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

    /// Returns the registers of the innermost frame around the program, if it is known.
    #[inline(always)]
    pub(crate) fn innermost_around(&self) -> Option<Registers> {
        let around = self.around.get();
        if around > self.reusable.get() {
            return None;
        }
        Some(self.frames.get(around.wrapping_sub(1))?.get().registers)
    }

    /// Adds the frames around the program to the hash of a chain that leads to the place of the
    /// innermost of them. Returns `None` if they are not the same any more.
    #[inline(always)]
    pub(crate) fn hash_with_around(&self, hash: StackHash) -> Option<StackHash> {
        let Registers { stack_pointer, instruction, frame_pointer } = self.innermost_around()?;
        let saved = stack_pointer - 2 * WORD;
        let mut all = Comparison::of(saved, stack_pointer, || [frame_pointer, instruction]);
        // All words are above the end of the chain, on the thread's own stack.
        for pair in self.frames.get(..self.around.get())?.windows(2) {
            if let [outer, inner] = pair {
                all = all.and(compare(outer, inner));
            }
        }
        all.is_equal().then(|| hash.with_outer(self.hash_around.get()))
    }

    /// Replaces the frames inside of those around the program by the hook's own frame and `count`
    /// further ones, each by `step` from the one before, which `step` stores in its slot. Keeps
    /// what is known of the outer frames whose addresses are the same. Returns false if `step`
    /// fails, or leads elsewhere than to the frames around the program, or if a frame pointer is no
    /// address of a word: then the last stack is empty.
    pub(crate) fn replace_inside(
        &self,
        here: Registers,
        count: usize,
        step: impl Fn(&Cell<Frame>, Registers) -> Option<Registers>,
    ) -> bool {
        let around = self.around.get();
        let length = around + count;
        let Some(slots) = self.frames.get(around..=length).filter(|_| length <= MAX_FRAMES) else {
            return false;
        };
        // Three words: the compiler keeps a struct of them in memory.
        let Registers { mut stack_pointer, mut frame_pointer, mut instruction } = here;
        let (mut changed, mut all) = (None, 0);
        for slot in slots.iter().rev() {
            let registers = Registers { stack_pointer, frame_pointer, instruction };
            all |= frame_pointer;
            if slot.get().address() != instruction {
                changed = Some(slot);
            }
            let Some(outer) = step(slot, registers) else {
                self.clear();
                return false;
            };
            Registers { stack_pointer, frame_pointer, instruction } = outer;
        }
        let end = Registers { stack_pointer, frame_pointer, instruction };
        // Only addresses of whole words are places of saved frame pointers.
        if self.innermost_around() != Some(end) || !all.is_multiple_of(WORD) {
            self.clear();
            return false;
        }
        self.length.set(length);
        self.reusable.set(length);
        self.own.set(OWN_FRAMES);
        self.opaque.set(0);
        self.keep_up_to(changed);
        self.keep(length);
        true
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

//! The walk over the last stack, in its place: for stacks whose frames lie where those before did.

use std::cell::Cell;

use super::progress::Progress;
use super::{Frame, LastStack, compare, verified};
use crate::stack::walk::frames::End;
use crate::stack::walk::registers::Registers;

/// The number of frames that are compared one by one before the rest are compared in eights.
const FEW: u32 = 2;

/// The registers of a frame's caller, and whether it lies where the frame in its slot of the last
/// stack did.
#[derive(Clone, Copy)]
pub(crate) enum Caller {
    InPlace(Registers),
    Elsewhere(Registers),
}

/// Returns these frames up to the outermost unchanged one.
// Not inlined: in a function of its own, all values are in registers.
#[inline(never)]
fn verify_many(frames: &[Cell<Frame>]) -> &[Cell<Frame>] {
    verified(frames)
}

impl LastStack {
    /// Walks outwards from the hook's own frame, as long as each frame has the stack pointer of the
    /// frame in its place in the last stack, and replaces those that have changed. Returns `None`
    /// if that has led to the outermost frame: the last stack is this stack then. Otherwise
    /// returns the walk in progress, with the frames so far.
    ///
    /// Nothing about a frame is assumed. The walk starts from the registers of this moment. A frame
    /// is unchanged if all its registers are. Its caller is unchanged if the two words that lead
    /// there are as they were, since a plain step depends on nothing else. Otherwise `step` finds
    /// the caller. So the frames are the same as without a last stack, however this stack came to
    /// be: after `longjmp`, a panic, or a change of stacks.
    ///
    /// A frame pointer that was not saved is compared with the entry of the outer frame, the one in
    /// the slot that `step` takes last. It stores the frame in the first slot. A caller with a
    /// return address of 0 has no step.
    ///
    /// The words lie above the hook's stack pointer, on the thread's own stack: stacks that have
    /// left it are not walked over. So they are mapped.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn retrace(
        &self,
        here: Registers,
        step: impl Fn(&Cell<Frame>, Registers, &Cell<Frame>) -> Option<Caller>,
        has_caller: impl Fn(Registers) -> bool,
    ) -> Option<Progress<'_>> {
        // Where an opaque frame is, the way over the last stack ends.
        let outermost = self.opaque.get();
        let length = self.length.get() + self.own.get();
        let begins_here =
            |slot: &Cell<Frame>| slot.get().registers.stack_pointer == here.stack_pointer;
        let Some(slots) = self.frames.get(outermost..length).filter(|_| self.own.get() != 0) else {
            return Some(Progress::begin(here, self));
        };
        let mut outer = slots.iter();
        let Some(mut slot) = outer.next_back().filter(|slot| begins_here(slot)) else {
            return Some(Progress::begin(here, self));
        };
        // Three words: the compiler keeps a struct of them in memory.
        let Registers { mut stack_pointer, mut frame_pointer, mut instruction } = here;
        let mut changed = None;
        'walk: loop {
            let known = slot.get().registers;
            if known.instruction == instruction && known.frame_pointer == frame_pointer {
                let (mut few, mut rest) = (FEW, outer.clone());
                while let Some(next) = rest.next_back()
                    && compare(next, slot).is_equal()
                {
                    slot = next;
                    few -= 1;
                    if few == 0 {
                        // The outermost of these is still the innermost in `outer`.
                        rest = verify_many(outer.as_slice()).iter();
                        let Some(unchanged) = rest.next_back() else { break 'walk };
                        (slot, outer) = (unchanged, rest);
                        break;
                    }
                    outer = rest.clone();
                }
                Registers { stack_pointer, frame_pointer, instruction } = slot.get().registers;
                if outer.len() == 0 {
                    if self.is_end(outermost, slot, || has_caller(slot.get().registers)) {
                        self.keep_up_to(changed);
                        return None;
                    }
                    break;
                }
            }
            loop {
                let Some(next) = outer.next_back() else { break 'walk };
                let registers = Registers { stack_pointer, frame_pointer, instruction };
                let Some(caller) = step(slot, registers, next) else { break 'walk };
                changed = Some(slot);
                slot = next;
                let (Caller::InPlace(registers) | Caller::Elsewhere(registers)) = caller;
                Registers { stack_pointer, frame_pointer, instruction } = registers;
                if matches!(caller, Caller::Elsewhere(_)) {
                    break 'walk;
                }
                let known = slot.get().registers;
                if known.instruction == instruction && known.frame_pointer == frame_pointer {
                    break;
                }
            }
        }
        // The walk may still meet the frame in this slot, and those outside of it.
        let left = self.index_of(slot) + 1;
        let registers = Registers { stack_pointer, frame_pointer, instruction };
        Some(self.leave(registers, left))
    }

    /// Keeps what is known of the frames outside of the outermost changed one.
    #[inline(always)]
    pub(super) fn keep_up_to(&self, changed: Option<&Cell<Frame>>) {
        if let Some(changed) = changed {
            self.keep(self.index_of(changed));
        }
    }

    /// Returns the index of this frame, which is one of the stack's.
    #[inline(always)]
    fn index_of(&self, frame: &Cell<Frame>) -> usize {
        (frame.as_ptr().addr() - self.frames.as_ptr().addr()) / size_of::<Frame>()
    }

    /// Ends the walk over the last stack at the frame with these registers, which may be one of the
    /// outermost `left` frames. The inner ones begin the stack of the walk that goes on.
    #[cold]
    #[inline(never)]
    fn leave(&self, registers: Registers, left: usize) -> Progress<'_> {
        let end = self.length.get() + self.own.get();
        // A return address of 0 is no frame: the one before it, which has just been replaced, may
        // be the outermost one. The walk that goes on finds that.
        let (registers, first) = match self.frames.get(left) {
            Some(before) if registers.instruction == 0 => (before.get().registers, left + 1),
            _ => (registers, left),
        };
        let places = match end.checked_sub(first + 1) {
            Some(_) => self.push_reused(0, first, end - 1),
            None => Some(self.places(0)),
        };
        // The inner frames are no longer those that lead to the outer ones.
        self.length.set(self.length.get().min(left));
        self.reusable.set(self.reusable.get().min(left));
        self.keep(left);
        self.own.set(0);
        // All frames of a stack fit into the places.
        Progress::go_on(registers, self, places.unwrap_or_else(|| self.places(0)))
    }

    /// Returns the end of a walk that has gone over the last stack.
    #[inline(always)]
    pub(crate) fn end(&self) -> End {
        if self.reusable.get() != 0 { End::Outermost } else { End::Truncated }
    }

    /// Returns whether a walk ends at this frame, which is the last one of those it went over.
    #[inline(always)]
    fn is_end(&self, outermost: usize, slot: &Cell<Frame>, has_caller: impl Fn() -> bool) -> bool {
        if outermost != 0 || slot.get().is_opaque() {
            return false;
        }
        // A stack with more frames than are stored ends where there are further ones.
        self.reusable.get() != 0 || has_caller()
    }
}

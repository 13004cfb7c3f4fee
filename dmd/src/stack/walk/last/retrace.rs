//! The walk over the last stack, in its place: for stacks whose frames lie where those before did.

use std::cell::Cell;

use super::progress::Progress;
use super::{Frame, LastStack, address_of_frame_pointer, compare, verified};
use crate::stack::walk::frames::End;
use crate::stack::walk::registers::Registers;

/// A step from a frame to its caller, which depends on the frame's registers and two words alone.
pub(crate) struct PlainStep {
    /// The address of the caller's saved frame pointer, or the one to use if it was not saved.
    pub(crate) saved: usize,
    pub(crate) caller: Registers,
}

/// The number of frames that are compared one by one before the rest are compared in fours.
const FEW: u32 = 2;

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
    /// A frame pointer that was not saved is compared with the entry of the outer frame, whose
    /// address `step` takes.
    ///
    /// The words lie above the hook's stack pointer, on the thread's own stack: stacks that have
    /// left it are not walked over. So they are mapped.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn retrace(
        &self,
        here: Registers,
        step: impl Fn(Registers, usize) -> Option<PlainStep>,
    ) -> Option<Progress<'_>> {
        // Where an opaque frame is, the way over the last stack ends.
        let outermost = self.opaque.get();
        let slots = self.frames.get(outermost..self.length.get() + self.own.get()).unwrap_or(&[]);
        let mut outer = slots.iter();
        let Some(mut slot) = outer.next_back().filter(|slot| {
            self.own.get() != 0 && slot.get().registers.stack_pointer == here.stack_pointer
        }) else {
            return Some(Progress::begin(here, self));
        };
        let mut registers = here;
        let mut changed = None;
        // The number of frames of the last stack that the walk may still meet.
        let left = loop {
            let known = slot.get().registers;
            if known.instruction == registers.instruction
                && known.frame_pointer == registers.frame_pointer
            {
                let mut few = FEW;
                while let Some(next) = outer.as_slice().last()
                    && compare(next, slot).is_equal()
                {
                    slot = next;
                    outer.next_back();
                    few -= 1;
                    if few == 0 {
                        let unchanged = verify_many(slots.get(..=outer.len()).unwrap_or(&[]));
                        outer = unchanged.iter();
                        slot = outer.next_back().unwrap_or(slot);
                        break;
                    }
                }
                registers = slot.get().registers;
                if outer.len() == 0 {
                    if self.is_end(outermost, slot, || step(registers, Frame::UNCHANGED).is_some())
                    {
                        self.keep_up_to(changed);
                        return None;
                    }
                    break outermost + 1;
                }
            }
            let Some(next) = outer.as_slice().last() else { break outermost + 1 };
            let Some(PlainStep { saved, caller }) = step(registers, address_of_frame_pointer(next))
            else {
                break outermost + outer.len() + 1;
            };
            slot.set(Frame { registers, saved });
            changed = Some(slot);
            registers = caller;
            if next.get().registers.stack_pointer != caller.stack_pointer {
                break outermost + outer.len();
            }
            slot = next;
            outer.next_back();
        };
        Some(self.leave(registers, left))
    }

    /// Keeps what is known of the frames outside of the outermost changed one.
    #[inline(always)]
    pub(super) fn keep_up_to(&self, changed: Option<&Cell<Frame>>) {
        if let Some(changed) = changed {
            let distance = changed.as_ptr().addr() - self.frames.as_ptr().addr();
            self.keep(distance / size_of::<Frame>());
        }
    }

    /// Ends the walk over the last stack at the frame with these registers, which may be one of the
    /// outermost `left` frames. The inner ones begin the stack of the walk that goes on.
    #[cold]
    #[inline(never)]
    fn leave(&self, registers: Registers, left: usize) -> Progress<'_> {
        let end = self.length.get() + self.own.get();
        let places = match end.checked_sub(left + 1) {
            Some(_) => self.push_reused(0, left, end - 1),
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
    fn is_end(&self, outermost: usize, slot: &Cell<Frame>, is_too_deep: impl Fn() -> bool) -> bool {
        if outermost != 0 || slot.get().is_opaque() {
            return false;
        }
        // A stack with more frames than are stored ends where there are further ones.
        self.reusable.get() != 0 || is_too_deep()
    }
}

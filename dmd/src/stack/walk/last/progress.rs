//! A walk in progress: the frames that it found, and those that it takes over from the last stack.

use std::cell::Cell;
use std::slice::Iter;

use super::{Frame, LastStack, NEW_FRAMES, Places, find};
use crate::stack::walk::registers::Registers;

/// The least number of unchanged frames outside of the current one that are taken over. To walk
/// fewer costs less.
const MIN_REUSED: usize = 2;

/// A walk in progress.
pub(crate) struct Progress<'thread> {
    pub(crate) last: &'thread LastStack,
    /// The registers of the current frame.
    pub(crate) registers: Registers,
    /// The outermost frames of the last stack, which the walk may still meet.
    left: Iter<'thread, Cell<Frame>>,
    /// The places for further frames.
    places: Places<'thread>,
    /// The number of outermost frames of the last stack that end this one.
    same: usize,
    has_opaque: bool,
}

/// The frames that a walk takes over from the last stack at its current frame.
pub(crate) enum Reuse {
    /// None, or some: the walk goes on from the current frame.
    Part,
    /// All outer frames: the walk is complete.
    Rest,
    /// Some, up to an opaque frame, which is the current one.
    UpToOpaque { is_interrupted: bool },
    /// More than a stack stores.
    TooMany,
}

impl<'thread> Progress<'thread> {
    /// Begins at the frame with these registers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn begin(registers: Registers, last: &'thread LastStack) -> Self {
        Self::go_on(registers, last, last.places(0))
    }

    /// Goes on at the frame with these registers. The frames before are in the places before these.
    pub(super) fn go_on(
        registers: Registers,
        last: &'thread LastStack,
        places: Places<'thread>,
    ) -> Self {
        let left = last.reusable().iter();
        Progress { last, registers, left, places, same: 0, has_opaque: false }
    }

    /// Returns the number of frames that were pushed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn found(&self) -> usize {
        NEW_FRAMES - self.places.len()
    }

    /// Takes over the unchanged frames from the current one outwards, if it is one of the last
    /// stack.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn reuse(&mut self) -> Reuse {
        match find(self.registers, &mut self.left) {
            Some(index) => self.take_over(index),
            None => Reuse::Part,
        }
    }

    /// Takes over the unchanged frames from the current one outwards. It has this index in the last
    /// stack.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take_over(&mut self, index: usize) -> Reuse {
        let verified = self.last.verify(index);
        let Some(frame) = self.last.frames.get(verified) else { return Reuse::Part };
        if verified == 0 && !frame.get().is_opaque() {
            self.same = index + 1;
            return Reuse::Rest;
        }
        let frame = frame.get();
        if index - verified < MIN_REUSED && !frame.is_opaque() {
            return Reuse::Part;
        }
        let Some(places) = self.last.push_reused(self.found(), verified + 1, index) else {
            return Reuse::TooMany;
        };
        self.places = places;
        self.left = self.left.as_slice().get(..verified).unwrap_or(&[]).iter();
        self.registers = frame.registers;
        if frame.is_opaque() {
            return Reuse::UpToOpaque { is_interrupted: frame.is_interrupted() };
        }
        Reuse::Part
    }

    /// Walks outwards to the first frame that is one of the last stack, and takes over the
    /// unchanged frames from there. `step` stores a frame in its place, and returns its caller.
    /// Stops before at a frame that has no caller, and where there is no space.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn advance(
        &mut self,
        step: impl Fn(&Cell<Frame>, Registers) -> Option<Registers>,
    ) -> Reuse {
        // Three words: the compiler keeps a struct of them in memory.
        let Registers { mut stack_pointer, mut frame_pointer, mut instruction } = self.registers;
        let (mut left, mut places) = (self.left.clone(), self.places.clone());
        let index = loop {
            let registers = Registers { stack_pointer, frame_pointer, instruction };
            let found = find(registers, &mut left);
            if found.is_some() {
                break found;
            }
            let mut rest = places.clone();
            let Some(caller) = rest.next().and_then(|place| step(place, registers)) else {
                break None;
            };
            if caller.instruction == 0 {
                break None;
            }
            places = rest;
            Registers { stack_pointer, frame_pointer, instruction } = caller;
        };
        (self.left, self.places) = (left, places);
        self.registers = Registers { stack_pointer, frame_pointer, instruction };
        index.map_or(Reuse::Part, |index| self.take_over(index))
    }

    /// Appends a frame. Returns `false` if there is no space.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn push(&mut self, frame: Frame) -> bool {
        self.places.next().map(|place| place.set(frame)).is_some()
    }

    /// Appends a frame of the slow path.
    pub(crate) fn push_opaque(&mut self, frame: Frame) -> bool {
        self.has_opaque |= frame.is_opaque();
        self.push(frame)
    }

    /// Looks for all frames of the last stack again: the walk has changed to another stack.
    pub(crate) fn look_for_all(&mut self) {
        self.left = self.last.reusable().iter();
    }

    /// Commits the frames to the last stack, of which the innermost `skip` are the hook's own.
    /// Returns whether all fit; otherwise the outermost are dropped.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit(&self, skip: usize) -> bool {
        self.last.commit(self.same, self.found(), skip, self.has_opaque)
    }
}

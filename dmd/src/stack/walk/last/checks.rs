//! The words of a stack that show whether its outer frames are unchanged.
//!
//! A frame is unchanged if its inner frame is, and the inner frame's return address and saved frame
//! pointer still lead to it. Both words lie above the stack pointer of the frame that the walk has
//! reached, on the thread's own stack.

use std::cell::Cell;

use super::{Frame, MAX_FRAMES};
use crate::mem::sys;
use crate::stack::walk::registers::Registers;
use crate::stack::walk::rule::WORD;

/// A word of a stack and its value.
#[derive(Clone, Copy)]
struct Check {
    address: usize,
    expected: usize,
}

/// The checks of a stack, from the outermost frame inwards.
pub(super) struct Checks {
    checks: [Cell<Check>; 2 * MAX_FRAMES],
    /// The number of checks of the frames up to each frame.
    counts: [Cell<u16>; MAX_FRAMES],
    /// A word that always fails a check.
    never: Cell<usize>,
}

const EMPTY: Check = Check { address: 0, expected: 0 };

impl Checks {
    pub(super) const fn new() -> Self {
        Checks {
            checks: [const { Cell::new(EMPTY) }; 2 * MAX_FRAMES],
            counts: [const { Cell::new(0) }; MAX_FRAMES],
            never: Cell::new(0),
        }
    }

    /// Sets the checks of a frame and its caller, after those of all outer frames.
    #[inline(always)]
    pub(super) fn set_frame(&self, index: usize, frame: Frame, outer: Option<Registers>) {
        let before = self.counts.get(index.wrapping_sub(1)).map_or(0, Cell::get);
        let mut count = before;
        let mut push = |address, expected| {
            if let Some(place) = self.checks.get(usize::from(count)) {
                place.set(Check { address, expected });
                count += 1;
            }
        };
        if let Some(outer) = outer {
            if frame.is_opaque() {
                push(self.never.as_ptr().expose_provenance(), 1);
            } else {
                push(outer.stack_pointer.wrapping_sub(WORD), outer.instruction);
                // Otherwise the frame pointers of both frames are equal.
                if frame.saved != Frame::UNCHANGED {
                    push(frame.saved, outer.frame_pointer);
                }
            }
        }
        if let Some(place) = self.counts.get(index) {
            place.set(count);
        }
    }

    /// Returns the index of the outermost frame that is unchanged, beginning with frame `from`.
    #[inline(always)]
    pub(super) fn verify(&self, from: usize) -> usize {
        let count = self.counts.get(from).map_or(0, Cell::get);
        let mut checks = self.checks.get(..usize::from(count)).unwrap_or(&[]);
        // Four at once, without a branch for each.
        while let [outer @ .., a, b, c, d] = checks {
            if difference(a) | difference(b) | difference(c) | difference(d) != 0 {
                break;
            }
            checks = outer;
        }
        while let [outer @ .., check] = checks {
            if difference(check) != 0 {
                return self.frame_of(outer.len(), from);
            }
            checks = outer;
        }
        0
    }

    /// Returns the index of the frame that a check belongs to, from frame `from` outwards.
    #[cold]
    #[inline(never)]
    fn frame_of(&self, check: usize, from: usize) -> usize {
        let has = |index: &usize| {
            self.counts.get(index - 1).is_some_and(|count| usize::from(count.get()) <= check)
        };
        (1..=from).rev().find(has).unwrap_or(0)
    }
}

/// Returns 0 if the word is unchanged.
#[inline(always)]
fn difference(check: &Cell<Check>) -> usize {
    let Check { address, expected } = check.get();
    sys::word_at(address) ^ expected
}

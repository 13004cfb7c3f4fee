//! The readable part of a stack: the thread's own above the stack pointer, and of other stacks what
//! the kernel confirms.

use crate::mem::sys;
use crate::mem::sys::{PAGE, StackBounds};

use super::rule::WORD;

/// The address range that the walk may read at its current position.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    low: usize,
    high: usize,
    own: StackBounds,
    /// The number of times that the walk changed to another stack.
    switches: u32,
    /// True if the walk has been on another stack than the thread's own.
    has_left_own_stack: bool,
}

/// A signal's stack, a coroutine's and the thread's own, with some reserve.
const MAX_SWITCHES: u32 = 8;

/// A plain rule finds the saved frame pointer within this many bytes below the CFA.
const MAX_SAVE_DISTANCE: usize = 256 * WORD;

/// The number of bytes of another stack that one step may confirm, at most.
const MAX_EXTENSION: usize = 64 * PAGE;

/// The words of a frame that lead to its caller.
pub(crate) struct FrameWords {
    pub(crate) return_address: usize,
    /// The word at the address where the frame pointer was saved.
    pub(crate) saved: usize,
}

impl Memory {
    pub(crate) fn new(own: StackBounds, stack_pointer: usize) -> Self {
        let is_own = own.low <= stack_pointer && stack_pointer < own.high;
        let high = if is_own { own.high } else { stack_pointer };
        Memory { low: stack_pointer, high, own, switches: 0, has_left_own_stack: !is_own }
    }

    pub(crate) fn has_left_own_stack(self) -> bool {
        self.has_left_own_stack
    }

    /// Reads the last word of a frame, and one inside it, if the frame lies upwards in the readable
    /// range.
    #[inline(always)]
    pub(crate) fn frame(self, from: usize, to: usize, saved: usize) -> Option<FrameWords> {
        if from < to && to <= self.high && from <= saved && to.is_multiple_of(WORD) {
            Some(FrameWords { return_address: sys::word_at(to - WORD), saved: sys::word_at(saved) })
        } else {
            None
        }
    }

    /// Returns the readable memory for the step from a frame with stack pointer `from` to one with
    /// `to`: up the stack, or to another stack. Returns `None` if the step is invalid.
    pub(crate) fn advance(self, from: usize, to: usize) -> Option<Memory> {
        if self.frame(from, to, from).is_some() { Some(self) } else { self.switch_stack(from, to) }
    }

    /// Reads the word at this address, if it is in the readable range.
    #[inline(always)]
    pub(crate) fn word(self, address: usize) -> Option<usize> {
        let may = self.low <= address && address <= self.high.wrapping_sub(WORD);
        may.then(|| sys::word_at(address))
    }

    /// Asks the kernel whether the stack just below `to` is readable.
    fn switch_stack(self, from: usize, to: usize) -> Option<Memory> {
        let top = to.checked_sub(WORD).filter(|top| top.is_multiple_of(WORD))?;
        let on_own = self.own.low <= from && from < self.own.high;
        let to_own = self.own.low <= top && top < self.own.high;
        if on_own && to_own {
            // On the thread's own stack, a step must lead upwards and stay inside.
            return None;
        }
        if !to_own
            && from < to
            && to - from <= MAX_EXTENSION
            && let Some(farther) = self.extend(to)
        {
            return Some(farther);
        }
        if self.switches == MAX_SWITCHES || !sys::is_readable(top) {
            return None;
        }
        let first_page = top & !(PAGE - 1);
        // A frame saves registers a little below its end.
        let below = top.saturating_sub(MAX_SAVE_DISTANCE);
        Some(Memory {
            low: if sys::is_readable(below) { below } else { first_page },
            high: if to_own { self.own.high } else { first_page + PAGE },
            switches: self.switches + 1,
            has_left_own_stack: true,
            ..self
        })
    }

    /// Extends the range page by page upwards, on a stack of unknown size.
    fn extend(self, to: usize) -> Option<Memory> {
        let mut high = self.high.max(self.low & !(PAGE - 1));
        while high < to {
            let page = high & !(PAGE - 1);
            sys::is_readable(page).then_some(())?;
            high = page + PAGE;
        }
        Some(Memory { high, has_left_own_stack: true, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(words: &[usize]) -> StackBounds {
        let range = words.as_ptr_range();
        StackBounds { low: range.start.addr(), high: range.end.addr() }
    }

    #[test]
    fn the_own_stack_is_read_upwards_and_to_its_end() {
        let words = [7_usize; 16];
        let own = bounds(&words);
        let memory = Memory::new(own, own.low + 8);
        assert_eq!(memory.word(own.low), None);
        assert_eq!(memory.word(own.low + 8), Some(7));
        assert_eq!(memory.word(own.high - 8), Some(7));
        assert_eq!(memory.word(own.high - 4), None);
        assert!(
            memory
                .advance(own.low + 8, own.high)
                .is_some_and(|memory| !memory.has_left_own_stack())
        );
        assert!(memory.advance(own.low + 8, own.low + 8).is_none());
        assert!(memory.advance(own.low + 8, own.low + 20).is_none());
    }

    #[test]
    fn another_stack_is_read_only_if_it_is_there_and_leads_back() {
        let (words, other) = ([7_usize; 16], vec![8_usize; 4096]);
        let (own, other) = (bounds(&words), bounds(&other));
        let memory = Memory::new(own, other.low);
        assert_eq!(memory.word(other.low), None);
        let memory = memory.advance(other.low, other.low + 64).unwrap();
        assert_eq!(memory.word(other.low), Some(8));
        let memory = memory.advance(other.low + 64, other.low + 5 * PAGE).unwrap();
        let memory = memory.advance(other.low + 5 * PAGE, own.low + 64).unwrap();
        assert_eq!(memory.word(own.low + 56), Some(7));
        assert!(memory.has_left_own_stack());
        // No stack is mapped at this address.
        assert!(memory.advance(own.low + 64, 0x7000).is_none());
    }

    #[test]
    fn a_cycle_of_stacks_ends() {
        let (words, other) = ([7_usize; 16], vec![8_usize; 64]);
        let (own, other) = (bounds(&words), bounds(&other));
        let mut memory = Memory::new(own, own.low);
        let turn = || {
            let there = memory.advance(own.low, other.low + 64)?;
            memory = there.advance(other.low + 64, own.low + 64)?;
            Some(())
        };
        assert_eq!(std::iter::from_fn(turn).take(100).count(), 4);
    }
}

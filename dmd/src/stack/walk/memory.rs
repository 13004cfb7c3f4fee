//! The memory that a walk may read: the thread's own stack above the stack pointer, and of other
//! stacks what the kernel copies.

mod copied_words;

pub(crate) use self::copied_words::CopiedWords;
use super::rule::WORD;
use crate::mem::sys;
use crate::mem::sys::{PAGE, StackBounds};

/// The memory that the walk may read at its current position.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'thread> {
    /// The part of the thread's own stack that is read by plain loads; empty on another stack.
    low: usize,
    high: usize,
    own: StackBounds,
    /// The words of another stack.
    copied: &'thread CopiedWords,
    /// The number of times that the walk changed to another stack.
    switches: u32,
    /// True if the walk has been on another stack than the thread's own.
    has_left_own_stack: bool,
}

/// The bounds of an empty range.
const EMPTY: StackBounds = StackBounds { low: usize::MAX, high: 0 };

/// A signal's stack, a coroutine's and the thread's own, with some reserve.
const MAX_SWITCHES: u32 = 8;

/// A plain rule finds the saved frame pointer within this many bytes below the CFA.
const MAX_SAVE_DISTANCE: usize = 256 * WORD;

/// The number of bytes of another stack between two frames, at most. A longer step is a change to
/// yet another stack.
const MAX_STEP: usize = 64 * PAGE;

impl<'thread> Memory<'thread> {
    #[inline(always)]
    pub(crate) fn new(
        own: StackBounds,
        stack_pointer: usize,
        copied: &'thread CopiedWords,
    ) -> Self {
        let is_own = own.low <= stack_pointer && stack_pointer < own.high;
        let StackBounds { low, high } =
            if is_own { StackBounds { low: stack_pointer, ..own } } else { EMPTY };
        // Whole words.
        let high = high & !(WORD - 1);
        if !is_own {
            copied.clear();
        }
        Memory { low, high, own, copied, switches: 0, has_left_own_stack: !is_own }
    }

    pub(crate) fn has_left_own_stack(self) -> bool {
        self.has_left_own_stack
    }

    /// Returns whether a frame with this stack pointer has no room for a caller on the stack. On
    /// the main thread, the program's arguments lie beyond it.
    pub(crate) fn is_outermost(self, stack_pointer: usize) -> bool {
        const LEAST_FRAME: usize = 4 * WORD;
        self.own.low <= stack_pointer
            && stack_pointer < self.own.high
            && self.own.high - stack_pointer < LEAST_FRAME
    }

    /// Returns the address `distance` below `cfa`, if it and the word below `cfa` lie upwards of
    /// the stack pointer `from` on the thread's own stack. `distance` is at least a word, and at
    /// most [`MAX_SAVE_DISTANCE`].
    #[inline(always)]
    pub(crate) fn saved_at(self, from: usize, cfa: usize, distance: usize) -> Option<usize> {
        let saved_at = cfa.wrapping_sub(distance);
        // No address of a stack is negative as a signed number. `cfa` may be any number; up to
        // `high`, the subtraction does not overflow as a signed one.
        let is_upwards = saved_at.cast_signed() >= from.cast_signed();
        (cfa <= self.high && is_upwards && cfa.is_multiple_of(WORD)).then_some(saved_at)
    }

    /// Returns whether the step from a frame with stack pointer `from` to one with `to` leads up
    /// the thread's own stack.
    fn is_upwards(self, from: usize, to: usize) -> bool {
        from < to && to <= self.high && to.is_multiple_of(WORD)
    }

    /// Returns the readable memory for the step from a frame with stack pointer `from` to one with
    /// `to`: up the stack, or to another stack. Returns `None` if the step is invalid.
    pub(crate) fn advance(self, from: usize, to: usize) -> Option<Self> {
        if self.is_upwards(from, to) { Some(self) } else { self.switch_stack(from, to) }
    }

    /// Reads the word at this address: on the thread's own stack if it is in the readable range, on
    /// another one if the kernel can read it.
    #[inline(always)]
    pub(crate) fn word(self, address: usize) -> Option<usize> {
        if self.high == 0 {
            self.copied.word(address)
        } else {
            let may = self.low <= address && address <= self.high.wrapping_sub(WORD);
            may.then(|| sys::word_at(address))
        }
    }

    /// Follows a step that does not lead up the thread's own stack.
    fn switch_stack(self, from: usize, to: usize) -> Option<Self> {
        let top = to.checked_sub(WORD).filter(|top| top.is_multiple_of(WORD))?;
        let on_own = self.own.low <= from && from < self.own.high;
        let to_own = self.own.low <= top && top < self.own.high;
        if on_own && to_own {
            // On the thread's own stack, a step must lead upwards and stay inside.
            return None;
        }
        let stays = !on_own && !to_own && from < to && to - from <= MAX_STEP;
        let switches = self.switches + u32::from(!stays);
        if switches > MAX_SWITCHES {
            return None;
        }
        let next = Memory { switches, has_left_own_stack: true, ..self };
        if to_own { next.on_own_stack(top) } else { next.on_other_stack(top, stays) }
    }

    /// Returns the memory on the thread's own stack around `top`, if it is mapped.
    fn on_own_stack(self, top: usize) -> Option<Self> {
        // The main thread's stack is mapped as it grows. No other thread unmaps it, so plain loads
        // follow.
        if !sys::is_readable(top) {
            return None;
        }
        // A frame saves registers a little below its end.
        let below = top.saturating_sub(MAX_SAVE_DISTANCE).max(self.own.low);
        let low = if sys::is_readable(below) { below } else { top & !(PAGE - 1) };
        Some(Memory { low, high: self.own.high & !(WORD - 1), ..self })
    }

    /// Returns the memory on another stack, if the kernel can read `top`.
    fn on_other_stack(self, top: usize, stays: bool) -> Option<Self> {
        if !stays {
            self.copied.clear();
        }
        let StackBounds { low, high } = EMPTY;
        self.copied.word(top).map(|_| Memory { low, high, ..self })
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "unmaps a stack")]
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
        let copied = CopiedWords::new();
        let memory = Memory::new(own, own.low + 8, &copied);
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
        let copied = CopiedWords::new();
        let memory = Memory::new(own, other.low, &copied);
        let memory = memory.advance(other.low, other.low + 64).unwrap();
        assert_eq!(memory.word(other.low), Some(8));
        assert_eq!(memory.word(other.low + 4), None);
        let memory = memory.advance(other.low + 64, other.low + 5 * PAGE).unwrap();
        let memory = memory.advance(other.low + 5 * PAGE, own.low + 64).unwrap();
        assert_eq!(memory.word(own.low + 56), Some(7));
        assert_eq!(memory.word(other.low), None, "plain loads are for the own stack");
        assert!(memory.has_left_own_stack());
        // No stack is mapped at this address.
        assert!(memory.advance(own.low + 64, 0x7000).is_none());
    }

    #[test]
    fn a_stack_that_is_unmapped_meanwhile_is_not_touched() {
        let words = [7_usize; 16];
        let pages = sys::map(4 * PAGE).expect("there is memory");
        let (own, start, copied) = (bounds(&words), pages.addr().get(), CopiedWords::new());
        let memory = Memory::new(own, start, &copied).advance(start, start + 64).unwrap();
        assert_eq!(memory.word(start + PAGE), Some(0));
        // SAFETY: these are the pages that were mapped above, and no reference leads into them.
        unsafe { sys::unmap(pages, 4 * PAGE) };
        assert_eq!(memory.word(start + PAGE), Some(0), "it was copied before");
        assert_eq!(memory.word(start), None);
        assert!(memory.advance(start + 64, start + 128).is_none());
        assert!(memory.advance(start + 64, own.low + 64).is_some());
    }

    #[test]
    fn a_cycle_of_stacks_ends() {
        let (words, other) = ([7_usize; 16], vec![8_usize; 64]);
        let (own, other) = (bounds(&words), bounds(&other));
        let copied = CopiedWords::new();
        let mut memory = Memory::new(own, own.low, &copied);
        let turn = || {
            let there = memory.advance(own.low, other.low + 64)?;
            memory = there.advance(other.low + 64, own.low + 64)?;
            Some(())
        };
        assert_eq!(std::iter::from_fn(turn).take(100).count(), 4);
    }
}

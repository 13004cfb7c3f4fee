//! Words of other stacks than the thread's own, as the kernel copied them.
//!
//! Another thread may unmap such a stack at any time, also between a check and a load. So the walk
//! uses the bytes that the system call returned, and never loads from the stack itself.

use std::cell::Cell;

use crate::mem::sys;
use crate::mem::sys::PAGE;
use crate::stack::walk::rule::WORD;

/// The number of words that one system call copies. They are several frames.
const COUNT: usize = 128;

/// The number of copied words below the requested one: the registers that its frame saved.
const BELOW: usize = 16;

/// The words around the last requested address.
pub(crate) struct CopiedWords {
    start: Cell<usize>,
    length: Cell<usize>,
    words: [Cell<usize>; COUNT],
}

impl CopiedWords {
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        CopiedWords {
            start: Cell::new(0),
            length: Cell::new(0),
            words: [const { Cell::new(0) }; COUNT],
        }
    }

    /// Forgets the words of an earlier walk.
    pub(crate) fn clear(&self) {
        self.length.set(0);
    }

    /// Returns the word at this address, if it is aligned and the kernel can read it.
    pub(crate) fn word(&self, address: usize) -> Option<usize> {
        if !address.is_multiple_of(WORD) {
            return None;
        }
        self.copied(address).or_else(|| {
            self.copy(address);
            self.copied(address)
        })
    }

    fn copied(&self, address: usize) -> Option<usize> {
        let index = address.checked_sub(self.start.get())? / WORD;
        let words = self.words.get(..self.length.get())?;
        words.get(index).map(Cell::get)
    }

    fn copy(&self, address: usize) {
        // Not from the page before, which may be unmapped.
        let start = (address & !(PAGE - 1)).max(address.saturating_sub(BELOW * WORD));
        let mut words = [0; COUNT];
        let length = sys::keeping_errno(|| sys::read_words_checked(start, &mut words));
        for (place, word) in self.words.iter().zip(words) {
            place.set(word);
        }
        self.start.set(start);
        self.length.set(length);
    }
}

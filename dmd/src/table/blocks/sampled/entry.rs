//! An entry of the compact table: a key and a word, which threads share.
//!
//! ```text
//! key   bits 0-47    the name: what the entry is for; 0 in a free entry
//!       bits 48-63   the version: how often the entry was used
//! word               a block's packed word, or the start of the block that overlaps a span;
//!                    0 in a free entry
//! ```
//!
//! A thread claims a free entry by compare-and-exchange of its key, and then stores the word: from
//! there on others see the block. To remove it, its owner clears the word first and the key second.
//! A reader loads key, word, and the key again. The version makes it a different one if the entry
//! was used for another block meanwhile, also for one at the same address.

use crate::mem::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::mem::sync::{AtomicU64, load_own};
use crate::mem::sys;

/// The two words of an entry.
pub(super) type Words = [AtomicU64; 2];

const NAME_BITS: u32 = 48;
const NAME: u64 = (1 << NAME_BITS) - 1;
const OVERLAP: u64 = 1;

const _: () = assert!(sys::ADDRESS_BITS <= NAME_BITS);

/// The name of what an entry is for. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name(u64);

impl Name {
    /// Returns the name of the block at this address. Blocks start at even addresses.
    pub(super) fn block(address: usize) -> Self {
        Name(address as u64 & NAME & !OVERLAP)
    }

    /// Returns the name of the overlap of a span, by the number of the span.
    pub(super) fn overlap(span: usize) -> Self {
        Name((span as u64) << 1 & NAME | OVERLAP)
    }

    /// Returns the address of a block; `None` for an overlap.
    pub(super) fn block_address(self) -> Option<usize> {
        usize::try_from(self.0).ok().filter(|_| self.0 & OVERLAP == 0)
    }
}

/// An entry in use, as its key was when it was looked up.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(super) words: &'static Words,
    pub(super) key: u64,
}

impl Entry {
    /// Returns the entry of these words, if it is in use.
    pub(super) fn of(words: &'static Words) -> Option<Self> {
        // Acquire, with the Release of `insert`: a former word is not seen with this key.
        let key = words[0].load(Acquire);
        (key & NAME != 0).then_some(Entry { words, key })
    }

    /// Claims a free entry and stores its word. Returns `false` if the entry is in use.
    pub(super) fn insert(words: &'static Words, name: Name, word: u64) -> bool {
        let [key, place] = words;
        let free = key.load(Relaxed);
        if free & NAME != 0 {
            return false;
        }
        let new = free.wrapping_add(1 << NAME_BITS) | name.0;
        // Acquire, with the Release of `clear`: this word is stored after the last owner's.
        // Release, with the Acquire of `of`.
        if key.compare_exchange(free, new, AcqRel, Relaxed).is_err() {
            return false;
        }
        // Release, with the Acquire of `word`: a record is written before the word that names it,
        // and a reader that sees this word also sees that the key has changed.
        place.store(word, Release);
        true
    }

    /// Frees the entry. Only its owner may.
    pub(super) fn clear(self) {
        let [key, place] = self.words;
        // The word first: another owner may follow as soon as the key is free. Release, as in
        // `Blocks::remove_with`.
        place.store(0, Release);
        // Release, with the Acquire of `insert`.
        key.store(self.key & !NAME, Release);
    }

    pub(super) fn name(self) -> Name {
        Name(self.key & NAME)
    }

    /// Returns the word that belongs to the key; 0 if there is none, or no longer.
    pub(super) fn word(self) -> u64 {
        let [key, place] = self.words;
        // Acquire, with the Release of `insert`: it orders this load and the next.
        let word = place.load(Acquire);
        if key.load(Acquire) == self.key { word } else { 0 }
    }

    /// Returns the word of an entry that this thread owns.
    pub(super) fn own_word(self) -> u64 {
        load_own(&self.words[1])
    }

    /// Replaces the word, unless its owner has changed it.
    pub(crate) fn replace_word(self, seen: u64, new: u64) {
        let _ = self.words[1].compare_exchange(seen, new, Relaxed, Relaxed);
    }
}

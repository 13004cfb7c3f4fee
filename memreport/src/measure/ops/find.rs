//! Blocks that are not known by their start: found by pointers into them, or by the words of what owns them.
//!
//! A tracker's table answers. Where there is none, the caller's formula stands in, and the outcome says so.
#![cfg_attr(
    feature = "std",
    expect(unsafe_code, reason = "looks into a block that a handle keeps alive")
)]

use alloc::vec::Vec;

use super::Ops;
use crate::allocator::size_source::SizeSource;
#[cfg(feature = "std")]
use crate::allocator::words::Words;
use crate::tracker::Tracker;
use crate::tracker::claim::{Block, Claim, Place};

impl Ops<'_> {
    /// Whether blocks can be found by pointers into them at this moment.
    #[must_use]
    pub fn finds_enclosing_blocks(&self) -> bool {
        matches!(self.collection.sizes, SizeSource::Table(tracker) if tracker.knows_all())
    }

    /// Whether there is a block that holds `inside`; `None` where no tracker knows.
    #[cfg(feature = "http")]
    pub(crate) fn is_in_block(&self, inside: *const u8) -> Option<bool> {
        match self.collection.sizes {
            SizeSource::Table(tracker) => {
                let is_found = find(tracker, inside.addr()).is_some();
                (is_found || tracker.knows_all()).then_some(is_found)
            }
            SizeSource::Layout | SizeSource::Allocator(_) => None,
        }
    }

    /// The block that holds `inside`, by any pointer into it; none is fine. Where no tracker knows, `otherwise` bytes.
    pub fn enclosing_block<T: ?Sized>(&self, inside: *const T, otherwise: usize) {
        match self.collection.sizes {
            SizeSource::Table(tracker) => {
                let found = self.claim(tracker, within(inside.cast::<u8>().addr()));
                self.compute_unknown(tracker, found, otherwise);
            }
            SizeSource::Layout | SizeSource::Allocator(_) => self.count_computed(otherwise),
        }
    }

    /// As [`enclosing_block`](Self::enclosing_block), for a block that is thought to begin so far before `inside`, and to have been
    /// made with `size`. If it was, it need not be looked for.
    pub(crate) fn enclosing_block_at(&self, inside: *const u8, offset: usize, size: usize) {
        if let SizeSource::Table(tracker) = self.collection.sizes {
            let start = inside.addr().wrapping_sub(offset);
            if let Some(bytes) = self.whole(tracker, start, size) {
                return self.count(bytes);
            }
        }
        self.enclosing_block(inside, size);
    }

    /// As [`enclosing_block`](Self::enclosing_block), for a block with several owners. They are the owners of one block if a
    /// tracker finds the same one for all, and without a tracker, if they give the same pointer.
    pub fn shared_enclosing_block<T: ?Sized>(
        &self,
        inside: *const T,
        otherwise: usize,
        owners: usize,
    ) -> bool {
        let address = inside.cast::<u8>().addr();
        let key = match self.collection.sizes {
            SizeSource::Table(tracker) => {
                find(tracker, address).map_or(address, |block| block.start)
            }
            SizeSource::Layout | SizeSource::Allocator(_) => address,
        };
        let share = self.shares(key, owners);
        if share.block {
            self.enclosing_block(inside, otherwise);
        }
        share.contents
    }

    /// Every block that holds one of these addresses, once each. Where no tracker knows, `otherwise` bytes in all.
    pub fn enclosing_blocks(&self, inside: impl IntoIterator<Item = *const u8>, otherwise: usize) {
        let SizeSource::Table(tracker) = self.collection.sizes else {
            return self.count_computed(otherwise);
        };
        let mut last = 0..0;
        let mut blocks = Vec::new();
        for address in inside.into_iter().map(<*const u8>::addr) {
            if last.contains(&address) {
                continue;
            }
            if let Some(block) = find(tracker, address) {
                last = block.start..block.start + block.usable;
                blocks.push(block.start);
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        let found = blocks.into_iter().map(|start| self.claim(tracker, within(start))).sum();
        self.compute_unknown(tracker, found, otherwise);
    }

    /// What was not found may be there all the same, where the tracker does not know all blocks: then the formula tells.
    fn compute_unknown(&self, tracker: &dyn Tracker, found: usize, otherwise: usize) {
        if !tracker.knows_all() {
            self.count_computed(otherwise.saturating_sub(found));
        }
    }

    /// The block that one of these machine words points to or into, if `is_it` knows it by the word's offset in it and by the
    /// size that was asked for.
    ///
    /// For containers that own an empty table, with no element left to point at. Says whether it was found.
    pub fn block_by_words(
        &self,
        words: impl IntoIterator<Item = usize>,
        is_it: impl Fn(usize, usize) -> bool,
    ) -> bool {
        let SizeSource::Table(tracker) = self.collection.sizes else { return false };
        for word in words {
            let block = find(tracker, word);
            if block.is_some_and(|block| is_it(word - block.start, block.requested)) {
                self.claim(tracker, within(word));
                return true;
            }
        }
        false
    }

    /// Every block that one of these machine words points to or into, once each, if `is_one` knows it by the word's offset in
    /// it and by the size that was asked for. Where no tracker knows, `otherwise` bytes.
    ///
    /// For containers whose storage holds no pointers but those to their own blocks. Padding may hold any word: then `is_one`
    /// has to tell.
    pub fn blocks_by_words(
        &self,
        words: impl IntoIterator<Item = usize, IntoIter: Clone>,
        is_one: impl Fn(usize, usize) -> bool,
        otherwise: usize,
    ) {
        match self.collection.sizes {
            SizeSource::Table(tracker) => {
                let mut found = 0;
                each_block(tracker, &words.into_iter(), |block, word| {
                    if is_one(word - block.start, block.requested) {
                        found += self.claim(tracker, within(word));
                    }
                });
                self.compute_unknown(tracker, found, otherwise);
            }
            SizeSource::Layout | SizeSource::Allocator(_) => self.count_computed(otherwise),
        }
    }

    /// Every block that one of these machine words points to or into, once each: the words of a handle whose blocks have
    /// `owners`, or `usize::MAX` if nobody knows how many. Where no tracker knows, `otherwise` is what is behind the pointer that all owners have in common.
    pub fn shared_blocks_by_words<T: ?Sized>(
        &self,
        words: impl IntoIterator<Item = usize, IntoIter: Clone>,
        otherwise: (*const T, usize),
        owners: usize,
    ) {
        let mut is_found = false;
        if let SizeSource::Table(tracker) = self.collection.sizes {
            each_block(tracker, &words.into_iter(), |block, word| {
                is_found = true;
                if self.shares(block.start, owners).block {
                    self.claim(tracker, within(word));
                }
            });
            is_found |= tracker.knows_all();
        }
        if !is_found {
            let (pointer, bytes) = otherwise;
            self.shared_enclosing_block(pointer, bytes, owners);
        }
    }

    /// Every block that one of these machine words points to or into, once each. They are lent to `behind`, as words.
    ///
    /// For values of which all that they own is behind one block.
    ///
    /// # Safety
    ///
    /// None of the words leads to a block but the pointer to that one, which lives as long as the value does.
    #[cfg(feature = "roaring")]
    pub(crate) unsafe fn blocks_behind_words(&self, words: &Words<'_>, behind: impl Fn(Words<'_>)) {
        let SizeSource::Table(tracker) = self.collection.sizes else { return };
        each_block(tracker, words, |block, word| {
            self.claim(tracker, within(word));
            // SAFETY: the block lives as long as the value, by the caller's promise.
            behind(unsafe { words.behind(block.start, block.requested) });
        });
    }

    /// Every block that one of these machine words points to or into, which others own as well. Those that are met for the first
    /// time are lent to `behind`, as words.
    ///
    /// For handles of which all that they own is behind one block.
    ///
    /// # Safety
    ///
    /// None of the words leads to a block but the pointer to that one, which lives as long as the handle does.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn shared_blocks_behind_words(
        &self,
        words: &Words<'_>,
        behind: impl Fn(Words<'_>),
    ) {
        let SizeSource::Table(tracker) = self.collection.sizes else { return };
        each_block(tracker, words, |block, word| {
            let share = self.shares(block.start, usize::MAX);
            if share.block {
                self.claim(tracker, within(word));
            }
            if share.contents {
                // SAFETY: the block lives as long as the handle, by the caller's promise.
                behind(unsafe { words.behind(block.start, block.requested) });
            }
        });
    }
}

/// A claim of the block that holds this address.
fn within(address: usize) -> Claim {
    Claim { address, size: None, place: Place::Inside }
}

pub(crate) fn find(tracker: &dyn Tracker, address: usize) -> Option<Block> {
    tracker.look_up(within(address)).block
}

/// Each block that these words lead to, once, with the first word that does. The words are few.
fn each_block(
    tracker: &dyn Tracker,
    words: &(impl Iterator<Item = usize> + Clone),
    mut each: impl FnMut(Block, usize),
) {
    for (index, word) in words.clone().enumerate() {
        let Some(block) = find(tracker, word) else { continue };
        let extent = block.start..block.start + block.usable.max(1);
        if !words.clone().take(index).any(|earlier| extent.contains(&earlier)) {
            each(block, word);
        }
    }
}

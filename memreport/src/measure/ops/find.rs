//! Finds blocks whose start is unknown, by pointers into them or by the words of their owners.
//!
//! The tracker's table answers. Without one, the caller's formula counts as *computed*.
#![expect(unsafe_code, reason = "reads blocks that a handle keeps alive, and passes contracts on")]

use alloc::vec::Vec;
use core::alloc::Layout;

use super::Ops;
use crate::allocator::size_source::SizeSource;
#[cfg(feature = "std")]
use crate::allocator::words::Words;
use crate::tracker::Tracker;
use crate::tracker::claim::{Block, Claim, Place};

/// The alignment of all blocks of a tracker's table.
const BLOCK_ALIGN: usize = 16;

impl Ops<'_> {
    /// Returns whether blocks can be found by pointers into them at this moment.
    #[must_use]
    pub fn finds_enclosing_blocks(&self) -> bool {
        matches!(self.collection.sizes, SizeSource::Table(tracker) if tracker.tracks_every_block())
    }

    /// Returns whether a block contains `inside`, or `None` if no tracker can tell.
    #[cfg(feature = "http")]
    pub(crate) fn is_in_block(&self, inside: *const u8) -> Option<bool> {
        match self.collection.sizes {
            SizeSource::Table(tracker) => {
                let is_found = find(tracker, inside.addr()).is_some();
                (is_found || tracker.tracks_every_block()).then_some(is_found)
            }
            SizeSource::Layout | SizeSource::Allocator(_) | SizeSource::Function(_) => None,
        }
    }

    /// Adds the block that contains `inside`, if there is one. Without a tracker, adds `otherwise`
    /// computed bytes.
    pub fn enclosing_block<T: ?Sized>(&self, inside: *const T, otherwise: usize) {
        match self.collection.sizes {
            SizeSource::Table(tracker) => {
                let found = self.claim_enclosing(tracker, inside.cast::<u8>().addr());
                self.compute_missing(tracker, found, otherwise);
            }
            SizeSource::Layout | SizeSource::Allocator(_) | SizeSource::Function(_) => {
                self.count_computed(otherwise);
            }
        }
    }

    /// Claims the block that contains this address. Returns its bytes.
    fn claim_enclosing(&self, tracker: &dyn Tracker, inside: usize) -> usize {
        let claim = within(inside);
        let found = tracker.look_up(claim);
        match (self.pending, found.block) {
            // Its word is in the cache now, and the quick way to claim it takes less time.
            (Some(pending), Some(block)) if self.collection.recorder.is_some() => {
                self.expect_block(pending, block.start, block.requested);
                found.bytes
            }
            _ => self.record(claim, found),
        }
    }

    /// Adds the block that contains `inside`, which probably begins `offset` bytes before it and
    /// was allocated with `size` bytes. If so, no search is needed. See
    /// [`enclosing_block`](Self::enclosing_block).
    pub(crate) fn enclosing_block_at(&self, inside: *const u8, offset: usize, size: usize) {
        if let SizeSource::Table(tracker) = self.collection.sizes {
            // The offset may be some bytes too small: the compiler chooses the order of a node's
            // small fields.
            let start = inside.addr().wrapping_sub(offset) / BLOCK_ALIGN * BLOCK_ALIGN;
            if let Some(pending) = self.pending {
                if tracker.exact_block(start, size).is_some() {
                    return self.expect_block(pending, start, size);
                }
            } else if let Some(bytes) = self.exact_block(tracker, start, size) {
                return self.count(bytes);
            }
        }
        self.enclosing_block(inside, size);
    }

    /// Adds a block with several owners, by a pointer into it. Returns whether to measure its
    /// contents here.
    ///
    /// Owners share a block if the tracker finds the same block for them. Without a tracker, they
    /// share one if they pass the same pointer. See [`enclosing_block`](Self::enclosing_block).
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
            SizeSource::Layout | SizeSource::Allocator(_) | SizeSource::Function(_) => address,
        };
        let share = self.share_of(key, owners);
        if share.block {
            self.enclosing_block(inside, otherwise);
        }
        share.contents
    }

    /// Adds a shared block whose layout is an assumption about std. If the table disagrees, the
    /// block is found by an address in it. Returns whether to measure its contents here.
    ///
    /// # Safety
    ///
    /// The contract of [`block`](Self::block).
    pub(crate) unsafe fn shared_block_or_enclosing(
        &self,
        start: *const u8,
        layout: Layout,
        owners: usize,
    ) -> bool {
        if let SizeSource::Table(tracker) = self.collection.sizes {
            if tracker.exact_block(start.addr(), layout.size()).is_none()
                && tracker.tracks_every_block()
            {
                return self.shared_enclosing_block(start, layout.size(), owners);
            }
        }
        // SAFETY: the caller's contract is passed through.
        unsafe { self.shared_block(start, layout, owners) }
    }

    /// Adds every block that contains one of these addresses, once each. Without a tracker, adds
    /// `otherwise` computed bytes in all.
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
        self.compute_missing(tracker, found, otherwise);
    }

    /// Adds computed bytes for blocks that an incomplete table does not contain.
    fn compute_missing(&self, tracker: &dyn Tracker, found: usize, otherwise: usize) {
        if !tracker.tracks_every_block() {
            self.count_computed(otherwise.saturating_sub(found));
        }
    }

    /// Adds the block that one of these machine words points into. Returns whether it was found.
    ///
    /// `is_it` recognizes the block by the word's offset in it and by its requested size in bytes.
    /// For containers that own an empty table, with no element to point at.
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

    /// Adds every block that one of these machine words points into, once each. Without a tracker,
    /// adds `otherwise` computed bytes.
    ///
    /// `is_one` recognizes a block by the word's offset in it and by its requested size in bytes.
    /// For containers whose storage holds no pointers but those to their own blocks. Padding may
    /// hold any word, which `is_one` must reject.
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
                self.compute_missing(tracker, found, otherwise);
            }
            SizeSource::Layout | SizeSource::Allocator(_) | SizeSource::Function(_) => {
                self.count_computed(otherwise);
            }
        }
    }

    /// Adds every block that one of these machine words points into, once each, as shared by
    /// `owners`.
    ///
    /// The words belong to a handle. `owners` is `usize::MAX` if the number is unknown. Without a
    /// tracker, adds `otherwise`: the pointer that all owners have in common, and computed bytes.
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
                if self.share_of(block.start, owners).block {
                    self.claim(tracker, within(word));
                }
            });
            is_found |= tracker.tracks_every_block();
        }
        if !is_found {
            let (pointer, bytes) = otherwise;
            self.shared_enclosing_block(pointer, bytes, owners);
        }
    }

    /// Adds the block that a handle owns alone, which begins at `start` and was allocated with
    /// `size` bytes. Returns `false`, and adds nothing, unless a tracker has every block.
    #[cfg(feature = "bytes")]
    pub(crate) fn whole_block(&self, start: *const u8, size: usize) -> bool {
        let Some(pending) = self.pending else { return false };
        if self.share_of(start.addr(), 1).block {
            self.expect_block(pending, start.addr(), size);
        }
        true
    }

    /// Adds every block that one of these machine words points into, once each, and passes its
    /// words to `measure`.
    ///
    /// For values whose blocks are all reached through one block.
    ///
    /// # Safety
    ///
    /// No word points to a block but the pointer to that one, which lives as long as the value.
    #[cfg(feature = "roaring")]
    pub(crate) unsafe fn blocks_behind_words(
        &self,
        words: &Words<'_>,
        measure: impl Fn(Words<'_>),
    ) {
        let SizeSource::Table(tracker) = self.collection.sizes else { return };
        each_block(tracker, words, |block, word| {
            self.claim(tracker, within(word));
            // SAFETY: the block lives as long as the value, by the caller's contract.
            measure(unsafe { words.pointee(block.start, block.requested) });
        });
    }

    /// Adds every shared block that one of these machine words points into. The words of a block
    /// that is visited for the first time are passed to `measure`.
    ///
    /// For handles whose blocks are all reached through one block.
    ///
    /// # Safety
    ///
    /// No word points to a block but the pointer to that one, which lives as long as the handle.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn shared_blocks_behind_words(
        &self,
        words: &Words<'_>,
        measure: impl Fn(Words<'_>),
    ) {
        let SizeSource::Table(tracker) = self.collection.sizes else { return };
        each_block(tracker, words, |block, word| {
            let share = self.share_of(block.start, usize::MAX);
            if share.block {
                self.claim(tracker, within(word));
            }
            if share.contents {
                // SAFETY: the block lives as long as the handle, by the caller's contract.
                measure(unsafe { words.pointee(block.start, block.requested) });
            }
        });
    }
}

/// Returns a claim of the block that contains this address.
fn within(address: usize) -> Claim {
    Claim { address, size: None, place: Place::Inside }
}

pub(super) fn find(tracker: &dyn Tracker, address: usize) -> Option<Block> {
    tracker.look_up(within(address)).block
}

/// Calls `each` once for each block that these few words point into, with the first such word.
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

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::measure::ops::collection::Collection;
    use crate::measure::ops::measure_with;
    use crate::tracker::claim::Found;
    use crate::tracker::findings::Recording;

    /// A tracker of two blocks that does not have every block.
    struct TwoBlocks;

    const BLOCKS: [Block; 2] = [
        Block { start: 0x1000, requested: 100, usable: 112, identity: 1 },
        Block { start: 0x2000, requested: 40, usable: 48, identity: 2 },
    ];

    impl Tracker for TwoBlocks {
        fn is_awake(&self) -> bool {
            true
        }

        fn tracks_every_block(&self) -> bool {
            false
        }

        fn state(&self) -> String {
            "a test".to_owned()
        }

        fn look_up(&self, claim: Claim) -> Found {
            let contains =
                |block: &Block| (block.start..block.start + block.usable).contains(&claim.address);
            let block = BLOCKS.into_iter().find(contains);
            Found { bytes: block.map_or(0, |block| block.usable), block, wrong: None }
        }

        fn exact_block(&self, _: usize, _: usize) -> Option<usize> {
            None
        }

        fn entry_address(&self, _: usize) -> *const u8 {
            core::ptr::null()
        }

        fn begin(&self) -> Box<dyn Recording> {
            unreachable!("nothing is collected")
        }

        fn own_memory(&self, _: &mut dyn FnMut(&'static str, usize, &'static str)) {}
    }

    #[test]
    fn blocks_that_the_tracker_does_not_have_are_computed() {
        // The words, and the bytes and computed ones of 500 that they should lead to.
        for (words, expected) in [
            (&[7, 0x1000, 0x1008, 0x2000][..], (500, 500 - 112 - 48)),
            (&[0x2008], (500, 500)),
            (&[0x1000], (500, 500 - 112)),
            (&[], (500, 500)),
        ] {
            let collection = Collection::new(SizeSource::Table(&TwoBlocks), None);
            let measured = measure_with(&collection, &(), |(), ops| {
                ops.blocks_by_words(words.iter().copied(), |offset, _| offset == 0, 500);
            });
            assert_eq!((measured.bytes, measured.computed), expected, "{words:x?}");
        }
    }
}

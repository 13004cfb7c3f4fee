//! Finds blocks whose start is unknown, by the machine words of their owners.
//!
//! The tracker's table answers. Without one, the caller's formula counts as *computed*.
#![cfg_attr(
    any(feature = "std", feature = "roaring"),
    expect(unsafe_code, reason = "reads blocks that a handle keeps alive")
)]

use super::Ops;
use super::find::{find, within};
use crate::allocator::size_source::SizeSource;
use crate::tracker::Tracker;
#[cfg(feature = "bytes")]
use crate::tracker::claim::{AtBegin, Claim, Place};
use crate::tracker::claim::{Block, Found};
#[cfg(feature = "std")]
use crate::tracker::words::Words;

/// The lowest address that a block may have: no system maps the first pages.
const FIRST_ADDRESS: usize = 1 << 12;

impl Ops<'_> {
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
            let found = tracker.look_up(within(word));
            if found.block.is_some_and(|block| is_it(word - block.start, block.requested)) {
                self.record(within(word), found);
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
                        // Not looked up again: other threads may free it meanwhile.
                        found += self.record(within(word), found_of(block));
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
    /// The words belong to a handle. `owners` is `usize::MAX` if the number is unknown. `memory` is
    /// a pointer that all owners have in common, and the bytes there, which are computed unless
    /// they lie in a block that was found or a tracker has every block.
    pub fn shared_blocks_by_words<T: ?Sized>(
        &self,
        words: impl IntoIterator<Item = usize, IntoIter: Clone>,
        memory: (*const T, usize),
        owners: usize,
    ) {
        let (pointer, bytes) = memory;
        let address = pointer.cast::<u8>().addr();
        let mut is_missing = true;
        if let SizeSource::Table(tracker) = self.collection.sizes {
            each_block(tracker, &words.into_iter(), |block, word| {
                // Values of no size may lie at its end, where for others the next block starts.
                let end = block.start + block.usable + usize::from(bytes == 0);
                is_missing &= !(block.start..end).contains(&address);
                if self.share_of(block.start, owners).block {
                    self.claim_found(within(word), found_of(block));
                }
            });
            is_missing &= !tracker.tracks_every_block();
        }
        if is_missing && self.share_of(address, owners).block {
            self.count_computed(bytes);
        }
    }

    /// Adds the blocks of a handle of shared memory, as
    /// [`shared_blocks_by_words`](Self::shared_blocks_by_words) does: blocks that start at one of
    /// the words accepted by `is_start`, and the block that contains the memory. Memory of 0 bytes
    /// may be another's.
    ///
    /// Where the tracker has gaps, a search for a block around the memory takes long, and often
    /// finds none. Mostly one of the other blocks knows where the memory starts.
    ///
    /// # Safety
    ///
    /// If one of the words accepted by `is_start` is the start of a block, the handle keeps that
    /// block alive.
    #[cfg(feature = "bytes")]
    pub(crate) unsafe fn shared_memory(
        &self,
        words: &Words<'_>,
        is_start: impl Fn(usize) -> bool,
        memory: (*const u8, usize),
        owners: usize,
    ) {
        let (address, bytes) = (memory.0.addr(), memory.1);
        // SAFETY: the caller's contract.
        if unsafe { self.claim_known_memory(words, &is_start, memory, owners) } {
            return;
        }
        let starts = words.clone().filter(|word| *word != address && is_start(*word));
        let tracker = match self.collection.sizes {
            SizeSource::Table(tracker) if !tracker.tracks_every_block() => tracker,
            _ => {
                let inside = (bytes > 0).then_some(address);
                return self.shared_blocks_by_words(starts.chain(inside), memory, owners);
            }
        };
        // There are bytes, so the end of a block is the next one's start.
        let contains = |block: &Block| (block.start..block.start + block.usable).contains(&address);
        let claim = |block: Block| {
            if self.share_of(block.start, owners).block {
                self.claim_found(within(block.start), found_of(block));
            }
        };
        let (mut is_missing, mut start) = (bytes > 0, None);
        let starts = starts.filter(|word| !self.is_surely_missing(tracker, *word));
        for block in starts.filter_map(|word| starting_at(tracker, word)) {
            is_missing &= !contains(&block);
            claim(block);
            // SAFETY: the handle keeps the block alive, by the caller's contract.
            let fields = unsafe { words.pointee(block.start, block.requested.min(MOST_OF_OWNERS)) };
            start = start.or_else(|| start_of_memory(&fields, address, bytes));
        }
        if is_missing {
            let around = match start.map(|start| starting_at(tracker, start)) {
                Some(None) => None,
                Some(Some(block)) if contains(&block) => Some(block),
                // No owner knows the start after all.
                _ => find(tracker, address),
            };
            match around {
                Some(block) => claim(block),
                None if self.share_of(address, owners).block => self.count_computed(bytes),
                None => {}
            }
        }
    }

    /// Adds the blocks of a handle of shared memory without a look-up, and returns `true`. Returns
    /// `false`, and adds nothing, if they cannot be found so.
    ///
    /// # Safety
    ///
    /// The contract of [`shared_memory`](Self::shared_memory).
    #[cfg(feature = "bytes")]
    unsafe fn claim_known_memory(
        &self,
        words: &Words<'_>,
        is_start: impl Fn(usize) -> bool,
        (memory, bytes): (*const u8, usize),
        owners: usize,
    ) -> bool {
        let (Some(pending), Some(recorder)) = (self.pending, self.collection.knows_blocks) else {
            return false;
        };
        let usable = |address| match recorder.at_begin(address) {
            AtBegin::Usable(usable) => Some(usable),
            AtBegin::Unknown | AtBegin::NoBlock => None,
        };
        let address = memory.addr();
        let starts = words.clone().filter(|word| *word != address && is_start(*word));
        let known = starts.filter_map(|word| Some((word, usable(word)?))).next();
        let Some((counts, of_counts)) = known else { return false };
        // SAFETY: the handle keeps the block alive, by the caller's contract.
        let fields = unsafe { words.pointee(counts, of_counts.min(MOST_OF_OWNERS)) };
        let Some(start) = start_of_memory(&fields, address, bytes) else { return false };
        if bytes == 0 || usable(start).is_none_or(|usable| address - start + bytes > usable) {
            return false;
        }
        for start in [counts, start] {
            if self.share_of(start, owners).block {
                self.expect_unsized_block(pending, core::ptr::without_provenance(start));
            }
        }
        true
    }

    /// Adds the block that a handle owns alone, which begins at `start` and was allocated with
    /// `size` bytes. They are computed if a tracker with gaps does not have it. Returns `false`,
    /// and adds nothing, without a tracker.
    #[cfg(feature = "bytes")]
    pub(crate) fn whole_block(&self, start: *const u8, size: usize) -> bool {
        let Some(pending) = self.pending else { return false };
        if self.share_of(start.addr(), 1).block {
            self.expect_supposed_block(pending, start, size);
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
            self.claim_found(within(word), found_of(block));
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
                self.claim_found(within(word), found_of(block));
            }
            if share.contents {
                // SAFETY: the block lives as long as the handle, by the caller's contract.
                measure(unsafe { words.pointee(block.start, block.requested) });
            }
        });
    }
}

/// The most bytes that are read of a block with the number of owners.
#[cfg(feature = "bytes")]
const MOST_OF_OWNERS: usize = 64;

/// Memory is smaller than this, and addresses are mostly greater.
#[cfg(feature = "bytes")]
const SIZE_LIMIT: usize = 1 << 40;

/// Returns the start of memory whose start and size, or capacity, are two of these fields, and
/// which contains so many bytes from this address on.
#[cfg(feature = "bytes")]
fn start_of_memory(fields: &Words<'_>, address: usize, bytes: usize) -> Option<usize> {
    fields.clone().filter(|start| (FIRST_ADDRESS..=address).contains(start)).find(|start| {
        let needed = address - start + bytes;
        fields.clone().any(|size| (needed..SIZE_LIMIT).contains(&size))
    })
}

/// Returns the block that starts at this address.
#[cfg(feature = "bytes")]
fn starting_at(tracker: &dyn Tracker, address: usize) -> Option<Block> {
    tracker.look_up(Claim { address, size: None, place: Place::StartIfAny }).block
}

/// Returns the answer of the look-up that found this block.
fn found_of(block: Block) -> Found {
    Found { bytes: block.usable, block: Some(block), wrong: None }
}

/// Calls `each` once for each block that these few words point into, with the first such word.
fn each_block(
    tracker: &dyn Tracker,
    words: &(impl Iterator<Item = usize> + Clone),
    mut each: impl FnMut(Block, usize),
) {
    for (index, word) in words.clone().enumerate() {
        if word < FIRST_ADDRESS {
            continue;
        }
        let Some(block) = find(tracker, word) else { continue };
        let extent = block.start..block.start + block.usable.max(1);
        if !words.clone().take(index).any(|earlier| extent.contains(&earlier)) {
            each(block, word);
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::measure::ops::collection::Collection;
    use crate::measure::ops::measure_with;
    use crate::tracker::claim::{Claim, Place, Wrong};
    use crate::tracker::findings::Recording;

    /// A tracker of few blocks that does not have every block.
    struct Few {
        blocks: Vec<Block>,
        /// The number of searches for the block around an address.
        searches: AtomicUsize,
    }

    impl Few {
        fn leaked(blocks: &[Block]) -> &'static Self {
            Box::leak(Box::new(Few { blocks: blocks.to_vec(), searches: AtomicUsize::new(0) }))
        }

        /// Returns the bytes that these measurements add, and how many of them are computed.
        fn measured(&'static self, measure: impl Fn(&Ops<'_>)) -> (usize, usize) {
            let collection = Collection::new(SizeSource::Table(self), None);
            let measured = measure_with(&collection, &(), |(), ops| measure(ops));
            (measured.bytes, measured.computed)
        }
    }

    const BLOCKS: [Block; 2] = [
        Block { start: 0x1000, requested: 100, usable: 112, identity: 1 },
        Block { start: 0x2000, requested: 40, usable: 48, identity: 2 },
    ];

    impl Tracker for Few {
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
            let is_it = |block: &&Block| {
                let extent = match claim.place {
                    Place::Inside => block.start..block.start + block.usable,
                    Place::Start | Place::StartIfAny => block.start..block.start + 1,
                };
                extent.contains(&claim.address)
            };
            if claim.place == Place::Inside {
                self.searches.fetch_add(1, Relaxed);
            }
            let block = self.blocks.iter().find(is_it).copied();
            let wrong = match (claim.place, block) {
                (Place::Start, None) => Some(Wrong::Untracked),
                _ => None,
            };
            Found { bytes: block.map_or(0, |block| block.usable), block, wrong }
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
            let measured = Few::leaked(&BLOCKS).measured(|ops| {
                ops.blocks_by_words(words.iter().copied(), |offset, _| offset == 0, 500);
            });
            assert_eq!(measured, expected, "{words:x?}");
        }
    }

    #[test]
    fn shared_memory_is_computed_unless_the_tracker_has_its_block() {
        let memory = core::ptr::without_provenance::<u8>(0x2008);
        let end = core::ptr::without_provenance::<u8>(0x1000 + 112);
        // A handle, which lies in the first block and shares none of it.
        let handle = core::ptr::without_provenance::<u8>(0x1008);
        // The words of a handle, its shared bytes, and the bytes and computed ones that it adds.
        for (words, memory, expected) in [
            (&[0x2008, 0x1000][..], (memory, 40), (112 + 48, 0)),
            // The counts were allocated later than the memory.
            (&[0x1000], (memory, 40), (112 + 40, 40)),
            (&[7], (memory, 40), (40, 40)),
            // The memory begins at the end of the block of the counts.
            (&[0x1000], (end, 40), (112 + 40, 40)),
            (&[0x1000], (end, 0), (112, 0)),
            (&[7], (handle, 0), (0, 0)),
        ] {
            let measured = Few::leaked(&BLOCKS).measured(|ops| {
                // Two owners share all of it.
                for _ in 0..2 {
                    ops.shared_blocks_by_words(words.iter().copied(), memory, usize::MAX);
                }
            });
            assert_eq!(measured, expected, "{words:x?}");
        }
    }

    #[cfg(feature = "bytes")]
    #[test]
    fn a_whole_block_is_claimed_or_else_computed() {
        // The quick look-up decides for neither; large blocks are like that.
        for (start, size, expected) in [(0x1000, 100, (112, 0)), (0x3000, 40, (40, 40))] {
            let start = core::ptr::without_provenance::<u8>(start);
            let measured = Few::leaked(&BLOCKS).measured(|ops| {
                assert!(ops.whole_block(start, size));
            });
            assert_eq!(measured, expected);
            let collection = Collection::new(SizeSource::Layout, None);
            let measured = measure_with(&collection, &(), |(), ops| {
                assert!(!ops.whole_block(start, size), "nothing tells that it is a block");
            });
            assert_eq!(measured.bytes, 0);
        }
    }

    #[cfg(feature = "bytes")]
    #[test]
    fn memory_without_an_entry_is_searched_for_only_if_no_owner_knows_its_start() {
        use crate::MallocSizeOf as _;
        use crate::tracker::words::{CAN_READ, words_of};

        if !CAN_READ {
            return;
        }
        let whole = bytes::Bytes::from(vec![7; 100]);
        let slice = whole.slice(10..30);
        let is_outside = |word: &usize| *word != slice.as_ptr().addr() && *word != slice.len();
        let words = words_of(&slice);
        // SAFETY: one points to the owners' block, and one to a static with several functions.
        let first = |word| unsafe { words.pointee(word, size_of::<usize>()) }.next();
        let is_owners = |word: &usize| first(*word) == Some(whole.as_ptr().addr());
        let owners = words.clone().filter(is_outside).find(is_owners).expect("it is shared");
        let owners = Block { start: owners, requested: 24, usable: 32, identity: 1 };
        let start = whole.as_ptr().addr();
        let memory = Block { start, requested: 100, usable: 112, identity: 2 };
        // The blocks that the tracker has, the bytes and computed ones, and the searches.
        for (blocks, expected, searches) in [
            (&[owners, memory][..], (32 + 112, 0), 0),
            (&[owners], (32 + 20, 20), 0),
            (&[memory], (112, 0), 1),
            (&[], (20, 20), 1),
        ] {
            let tracker = Few::leaked(blocks);
            let measured = tracker.measured(|ops| {
                ops.measure_borrowed(&slice, bytes::Bytes::add_size_of_excluding_this);
            });
            assert_eq!((measured, tracker.searches.load(Relaxed)), (expected, searches));
        }
    }
}

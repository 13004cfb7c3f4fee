//! Finds blocks whose start is unknown, by the machine words of their owners.
//!
//! The tracker's table answers. Without one, the caller's formula counts as *computed*.
#![cfg_attr(
    any(feature = "std", feature = "roaring"),
    expect(unsafe_code, reason = "reads blocks that a handle keeps alive")
)]

#[cfg(feature = "bytes")]
mod shared_memory;

#[cfg(feature = "bytes")]
pub(crate) use shared_memory::{Handle, SharedMemory};

use super::Ops;
use super::find::{find, within};
use crate::allocator::size_source::SizeSource;
use crate::tracker::Tracker;
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
pub(super) mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::vec;

    use super::*;
    use crate::measure::ops::collection::Collection;
    use crate::measure::ops::measure_with;
    use crate::tracker::claim::{Claim, Place, Wrong};
    use crate::tracker::findings::Recording;

    /// A tracker of few blocks that does not have every block.
    pub(in crate::measure::ops) struct Few {
        blocks: Vec<Block>,
        /// The number of searches for the block around an address.
        pub(in crate::measure::ops) searches: AtomicUsize,
    }

    impl Few {
        pub(in crate::measure::ops) fn leaked(blocks: &[Block]) -> &'static Self {
            Box::leak(Box::new(Few { blocks: blocks.to_vec(), searches: AtomicUsize::new(0) }))
        }

        /// Returns the bytes that these measurements add, and how many of them are computed.
        pub(super) fn measured(&'static self, measure: impl Fn(&Ops<'_>)) -> (usize, usize) {
            let collection = Collection::new(SizeSource::Table(self), None);
            let measured = measure_with(&collection, &(), |(), ops| measure(ops));
            (measured.bytes, measured.computed)
        }
    }

    pub(in crate::measure::ops) const BLOCKS: [Block; 2] = [
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
    fn a_block_behind_the_buffer_of_an_iterator_is_not_the_buffer() {
        use crate::MallocSizeOf as _;
        use crate::tracker::words::CAN_READ;

        if !CAN_READ {
            return;
        }
        let iterator = || Vec::from_iter(0..8_u64).into_iter();
        let (whole, mut begun, mut ended) = (iterator(), iterator(), iterator());
        begun.next();
        assert_eq!(ended.by_ref().sum::<u64>(), 28);
        let empty = Vec::<u64>::with_capacity(8).into_iter();
        // The start of the buffer, and the computed bytes if the tracker does not have it.
        for (iterator, start, computed) in [
            (&whole, whole.as_slice().as_ptr().addr(), 64),
            (&begun, begun.as_slice().as_ptr().addr() - 8, 56),
            (&ended, ended.as_slice().as_ptr().addr() - 64, 0),
            (&empty, empty.as_slice().as_ptr().addr(), 0),
        ] {
            let block = |start| Block { start, requested: 64, usable: 64, identity: 1 };
            let measured = |blocks: &[Block]| {
                Few::leaked(blocks).measured(|ops| {
                    ops.measure_borrowed(iterator, vec::IntoIter::add_size_of_excluding_this);
                })
            };
            assert_eq!(measured(&[block(start), block(start + 64)]), (64, 0));
            assert_eq!(measured(&[block(start + 64)]), (computed, computed));
        }
        let heap = Vec::from_iter(0..8_u64);
        let start = heap.as_ptr().addr();
        let heap = std::collections::BinaryHeap::from(heap).into_iter();
        let behind = Block { start: start + 64, requested: 64, usable: 64, identity: 1 };
        let measured = Few::leaked(&[behind]).measured(|ops| {
            ops.measure_borrowed(&heap, |heap, ops| heap.add_size_of_excluding_this(ops));
        });
        assert_eq!(measured, (0, 0));
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
}

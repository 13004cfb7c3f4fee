//! Finds the memory of handles that share it, and the blocks that count their owners.
//!
//! During a collection the recorder knows most blocks without a look-up. Otherwise the tracker's
//! table answers; without one, the block that contains the memory is not known.
#![expect(unsafe_code, reason = "reads blocks that a handle keeps alive")]

use core::ptr::without_provenance;

use super::super::find::{find, within};
use super::super::pending::Pending;
use super::super::{Collection, Ops};
use super::{FIRST_ADDRESS, found_of};
use crate::allocator::size_source::SizeSource;
use crate::measure::known_blocks::KnownBlocks;
use crate::tracker::Tracker;
use crate::tracker::claim::{AroundBegin, AtBegin, Block, Claim, Place, Wrong};
use crate::tracker::words::Words;

/// The most bytes that are read of a block with the number of owners.
const MOST_OF_OWNERS: usize = 64;

/// The bytes of the smallest pages.
const PAGE: usize = 1 << 12;

/// Memory is smaller than this, and addresses are mostly greater.
const SIZE_LIMIT: usize = match 1_usize.checked_shl(40) {
    Some(limit) => limit,
    None => usize::MAX,
};

/// The memory that a handle gives access to.
#[derive(Clone, Copy)]
pub(crate) struct SharedMemory {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    /// The number of owners; `usize::MAX` if it is unknown.
    pub(crate) owners: usize,
}

/// A handle of shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Handle<'h> {
    pub(crate) words: &'h Words<'h>,
    /// The word that points to the block with the number of owners, if that is a block.
    pub(crate) counts: usize,
}

impl Ops<'_> {
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
    pub(crate) unsafe fn shared_memory(
        &self,
        words: &Words<'_>,
        is_start: impl Fn(usize) -> bool,
        memory: SharedMemory,
    ) {
        let SharedMemory { address, bytes, owners } = memory;
        let starts = words.clone().filter(|word| *word != address && is_start(*word));
        if let SizeSource::Table(tracker) = self.collection.sizes {
            let known = self.collection.known_blocks.as_ref();
            let counts = known.and_then(|known| starts.clone().find(|word| is_known(known, *word)));
            if let Some(counts) = counts {
                // SAFETY: the caller's contract.
                if unsafe { self.memory_of_owners(Handle { words, counts }, memory) } {
                    return;
                }
            }
            if !tracker.tracks_every_block() {
                // If these are surely no blocks, the owners are from before tracking.
                let has_owners = |known: &KnownBlocks<'_>| {
                    starts.clone().any(|word| known.at(word) != AtBegin::NoBlock)
                };
                if let (Some(pending), Some(known)) = (self.pending, known) {
                    if bytes > 0
                        && !has_owners(known)
                        && self.memory_around_begin(pending, known, memory)
                    {
                        return;
                    }
                }
                // SAFETY: the caller's contract.
                return unsafe { self.memory_with_gaps(tracker, words, starts, memory) };
            }
        }
        let inside = (bytes > 0).then_some(address);
        let pointer = without_provenance::<u8>(address);
        self.shared_blocks_by_words(starts.chain(inside), (pointer, bytes), owners);
    }

    /// Adds the block of a handle's owners, and the memory that it leads to, as the recorder knows
    /// them without a look-up. Returns `false`, and adds nothing, if it does not.
    ///
    /// # Safety
    ///
    /// If a block starts at the handle's `counts`, the handle keeps it alive.
    #[inline]
    pub(crate) unsafe fn memory_of_owners(&self, handle: Handle<'_>, memory: SharedMemory) -> bool {
        let Collection { known_blocks: Some(blocks), .. } = self.collection else { return false };
        let Some(pending) = self.pending.filter(|_| memory.bytes > 0) else { return false };
        // SAFETY: the caller's contract.
        unsafe { self.memory_of_known_owners(pending, blocks, handle, memory) }
    }

    /// Adds the block of a handle's owners, if it is one, and the memory that it leads to.
    /// Returns `false`, and adds nothing, if that cannot be found so.
    ///
    /// # Safety
    ///
    /// If a block starts at the handle's `counts`, the handle keeps it alive.
    unsafe fn memory_of_known_owners(
        &self,
        pending: &Pending,
        blocks: &KnownBlocks<'_>,
        Handle { words, counts }: Handle<'_>,
        memory: SharedMemory,
    ) -> bool {
        let of_counts = match blocks.at(counts) {
            AtBegin::Usable(usable) => usable,
            // The block of the owners is not tracked, or newer than the collection, or none.
            AtBegin::NoBlock if self.collection.has_gaps() => {
                return self.memory_around_begin(pending, blocks, memory);
            }
            AtBegin::NoBlock | AtBegin::Unknown => return false,
        };
        let (start, tracked) = match blocks.at(memory.address) {
            // Mostly the slice begins where its memory does. Blocks do not overlap.
            AtBegin::Usable(usable) if memory.bytes <= usable => (memory.address, Some(usable)),
            _ => {
                // Not beyond the page, in case that it took the place of a larger block.
                let readable = of_counts.min(MOST_OF_OWNERS).min(PAGE - counts % PAGE);
                // SAFETY: the handle keeps the block alive, by the caller's contract, and with it
                // the page.
                let fields = unsafe { words.pointee(counts, readable) };
                let Some(start) = start_of_memory(&fields, memory.address, memory.bytes) else {
                    return false;
                };
                let needed = memory.address - start + memory.bytes;
                match blocks.at(start) {
                    AtBegin::Usable(usable) if needed <= usable => (start, Some(usable)),
                    AtBegin::NoBlock if self.collection.has_gaps() => (start, None),
                    AtBegin::Usable(_) | AtBegin::NoBlock | AtBegin::Unknown => return false,
                }
            }
        };
        self.expect_shared(pending, counts, of_counts, memory.owners);
        match tracked {
            Some(usable) => self.expect_shared(pending, start, usable, memory.owners),
            None => self.compute_memory(memory),
        }
        true
    }

    /// Adds the block that contained the memory when the collection began, or computes the bytes if
    /// there was none. Returns `false`, and adds nothing, if that is unknown.
    fn memory_around_begin(
        &self,
        pending: &Pending,
        blocks: &KnownBlocks<'_>,
        memory: SharedMemory,
    ) -> bool {
        match blocks.around(memory.address) {
            AroundBegin::Unknown => return false,
            AroundBegin::NoBlock => self.compute_memory(memory),
            AroundBegin::Block { start, usable } => {
                self.expect_shared(pending, start, usable, memory.owners);
            }
        }
        true
    }

    /// Adds a handle's blocks that the table has, and computes the memory if it is in none of them.
    ///
    /// # Safety
    ///
    /// The handle with these words keeps the blocks that start at one of `starts` alive.
    unsafe fn memory_with_gaps(
        &self,
        tracker: &dyn Tracker,
        words: &Words<'_>,
        starts: impl Iterator<Item = usize>,
        memory: SharedMemory,
    ) {
        let SharedMemory { address, bytes, owners } = memory;
        // There are bytes, so the end of a block is the next one's start.
        let contains = |block: &Block| (block.start..block.start + block.usable).contains(&address);
        let claim = |block: Block| {
            if self.share_of(block.start, owners).block {
                self.claim_found(within(block.start), found_of(block));
            }
        };
        let (mut is_missing, mut start) = (bytes > 0, None);
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
                None => self.compute_memory(memory),
            }
        }
    }

    /// Adds a block that the recorder knows, with its usable bytes, unless another owner has.
    fn expect_shared(&self, pending: &Pending, start: usize, usable: usize, owners: usize) {
        if self.share_of(start, owners).block {
            self.expect_found_block(pending, start, usable);
        }
    }

    /// Computes the bytes of memory whose block is not tracked, unless another owner has.
    fn compute_memory(&self, memory: SharedMemory) {
        if self.share_of(memory.address, memory.owners).block {
            self.count_computed(memory.bytes);
        }
    }

    /// Adds the block that a handle owns alone, which begins at `start` and was allocated with
    /// `size` bytes. Its usable bytes are those of its size class, where the allocator has them. If
    /// not, they are computed if a tracker with gaps does not have the block. Returns `false`, and
    /// adds nothing, if there is neither a class nor a tracker.
    #[inline]
    pub(crate) fn whole_block(&self, start: *const u8, size: usize) -> bool {
        let Some(usable) = self.collection.classes.usable(size) else {
            return self.whole_block_by_table(start, size);
        };
        if self.share_of(start.addr(), 1).block {
            match self.pending {
                Some(pending) => self.expect_small_block(pending, start, size, usable),
                None => self.count(usable),
            }
        }
        true
    }

    /// Adds a block as [`whole_block`](Self::whole_block) does, by the tracker.
    #[inline(never)]
    fn whole_block_by_table(&self, start: *const u8, size: usize) -> bool {
        let SizeSource::Table(tracker) = self.collection.sizes else { return false };
        if self.share_of(start.addr(), 1).block {
            match self.pending {
                Some(pending) => self.expect_supposed_block(pending, start, size),
                None => self.look_up_supposed(tracker, start.addr(), size),
            }
        }
        true
    }

    /// Adds the block that probably begins at `start` and was allocated with `size` bytes.
    fn look_up_supposed(&self, tracker: &dyn Tracker, start: usize, size: usize) {
        let claim = Claim { address: start, size: Some(size), place: Place::Start };
        let found = tracker.look_up(claim);
        if found.wrong == Some(Wrong::Untracked) {
            self.count_computed(size);
        } else {
            self.record(claim, found);
        }
    }
}

/// Returns whether the recorder knows a block that started at this address, and its size.
fn is_known(blocks: &KnownBlocks<'_>, address: usize) -> bool {
    matches!(blocks.at(address), AtBegin::Usable(_))
}

/// Returns the start of memory whose start and size, or capacity, are two of these fields, and
/// which contains so many bytes from this address on. Of several fields the greatest: a capacity
/// may look like an address where these are low.
fn start_of_memory(fields: &Words<'_>, address: usize, bytes: usize) -> Option<usize> {
    let is_start = |start: &usize| {
        let needed = (FIRST_ADDRESS..=address).contains(start).then(|| address - start + bytes);
        let holds = |needed| fields.clone().any(|size| (needed..SIZE_LIMIT).contains(&size));
        needed.is_some_and(holds)
    };
    fields.clone().filter(is_start).max()
}

/// Returns the block that starts at this address.
fn starting_at(tracker: &dyn Tracker, address: usize) -> Option<Block> {
    tracker.look_up(Claim { address, size: None, place: Place::StartIfAny }).block
}

#[cfg(test)]
mod tests {
    use core::ptr::without_provenance;
    use core::sync::atomic::Ordering::Relaxed;

    use super::super::tests::{BLOCKS, Few};
    use super::*;
    use crate::measure::ops::{Collection, measure_with};

    #[test]
    fn a_whole_block_is_claimed_or_else_computed() {
        // The quick look-up decides for neither; large blocks are like that.
        for (start, size, expected) in [(0x1000, 100, (112, 0)), (0x3000, 40, (40, 40))] {
            let start = without_provenance::<u8>(start);
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

    #[test]
    fn a_capacity_is_not_the_start_of_memory_where_addresses_are_low() {
        use crate::tracker::words::{CAN_READ, words_of};

        if !CAN_READ {
            return;
        }
        let (capacity, start) = (0x2000, 0x12_3000);
        for fields in [[capacity, start, 100], [start, 100, capacity]] {
            let found = |address, bytes| start_of_memory(&words_of(&fields), address, bytes);
            assert_eq!(found(start + 16, 100), Some(start));
            assert_eq!(found(start + capacity - 8, 8), Some(start));
            assert_eq!(found(100, 8), None);
        }
    }

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

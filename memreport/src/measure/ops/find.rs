//! Finds blocks whose start is unknown, by pointers into them.
//!
//! The tracker's table answers. Without one, the caller's formula counts as *computed*.
#![expect(unsafe_code, reason = "passes contracts on")]

use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::without_provenance;

use super::Ops;
use super::pending::Pending;
use crate::allocator::size_source::SizeSource;
use crate::tracker::Tracker;
use crate::tracker::claim::{AroundBegin, AtBegin, Block, Claim, Found, Place};

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
        self.claim_found(claim, tracker.look_up(claim))
    }

    /// Claims a block that was looked up, and lives until the measurement ends or its borrow does.
    /// Returns its bytes.
    pub(super) fn claim_found(&self, claim: Claim, found: Found) -> usize {
        match (self.pending, found.block) {
            // Its word is in the cache now, and the quick way to claim it takes less time.
            (Some(pending), Some(block)) => {
                self.expect_block(pending, without_provenance(block.start), block.requested);
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
            let exact = || tracker.exact_block(start, size);
            if let Some(pending) = self.pending {
                let known = self.known_block(start, size);
                if let Some(usable) = known.filter(|usable| inside.addr() - start < *usable) {
                    return self.expect_found_block(pending, start, usable);
                }
                if self.enclosing_at_begin(tracker, pending, inside.addr(), size) {
                    return;
                }
                if exact().is_some() {
                    return self.expect_block(pending, without_provenance(start), size);
                }
            } else if let Some(bytes) = exact() {
                return self.count(bytes);
            }
        }
        self.enclosing_block(inside, size);
    }

    /// Where the tracker has gaps, adds the block that contained this address when the collection
    /// began, or else computes `size` bytes: a search for a block from before tracking takes long.
    /// Returns `false`, and adds nothing, if the recorder does not know.
    fn enclosing_at_begin(
        &self,
        tracker: &dyn Tracker,
        pending: &Pending,
        inside: usize,
        size: usize,
    ) -> bool {
        let Some(known) = &self.collection.known_blocks else { return false };
        if tracker.tracks_every_block() {
            return false;
        }
        match known.around(inside) {
            AroundBegin::Unknown => return false,
            AroundBegin::NoBlock => self.count_computed(size),
            AroundBegin::Block { start, usable } => self.expect_found_block(pending, start, usable),
        }
        true
    }

    /// Returns the usable bytes of the block that started here when the collection began, if the
    /// recorder knows them without a look-up and they fit a request of `size` bytes.
    fn known_block(&self, start: usize, size: usize) -> Option<usize> {
        match self.collection.known_blocks.as_ref()?.at(start) {
            AtBegin::Usable(usable) => {
                self.collection.classes.may_have(usable, size).then_some(usable)
            }
            AtBegin::Unknown | AtBegin::NoBlock => None,
        }
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
            if let (Some(pending), Some(usable)) =
                (self.pending, self.known_block(start.addr(), layout.size()))
            {
                let share = self.share_of(start.addr(), owners);
                if share.block {
                    self.expect_found_block(pending, start.addr(), usable);
                }
                return share.contents;
            }
            if tracker.tracks_every_block()
                && tracker.exact_block(start.addr(), layout.size()).is_none()
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
    pub(super) fn compute_missing(&self, tracker: &dyn Tracker, found: usize, otherwise: usize) {
        if !tracker.tracks_every_block() {
            self.count_computed(otherwise.saturating_sub(found));
        }
    }
}

/// Returns a claim of the block that contains this address.
pub(super) fn within(address: usize) -> Claim {
    Claim { address, size: None, place: Place::Inside }
}

/// Returns the block that contains this address, by a look-up in the table.
pub(super) fn find(tracker: &dyn Tracker, address: usize) -> Option<Block> {
    tracker.look_up(within(address)).block
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::cell::{OnceCell, RefCell};
    use std::sync::atomic::Ordering::Relaxed;

    use super::super::by_words::tests::{BLOCKS, Few};
    use super::super::{Collection, measure_with};
    use super::*;
    use crate::tracker::claim::{CountedBlocks, ExpectedBlocks, ExpectedSizes};
    use crate::tracker::claimant::Claimant;
    use crate::tracker::recorder::{Position, Recorder};
    use crate::tracker::region_blocks::{RegionBlocks, SizeCodes};
    use crate::tracker::short_claim::Region;

    /// A recorder that knows the blocks from the beginning of the collection, and takes claims of
    /// them.
    #[derive(Default)]
    struct FromBegin {
        claims: RefCell<Vec<(usize, ExpectedSizes)>>,
        codes: OnceCell<Vec<u8>>,
    }

    impl Recorder for FromBegin {
        fn claimed(&self, claim: Claim, _: Found, _: Claimant) {
            panic!("{claim:?} was looked up");
        }

        fn claimed_expected(&self, blocks: ExpectedBlocks<'_>, _: u32) -> CountedBlocks {
            blocks.look_up(|block| {
                let sizes = block.known().expect("it is known");
                self.claims.borrow_mut().push((block.start().addr(), sizes));
                Some(sizes.usable)
            })
        }

        fn knows_all_regions(&self) -> bool {
            true
        }

        fn nth_region(&self, index: usize) -> Option<RegionBlocks<'_>> {
            let sizes = SizeCodes { align_bits: 4, remainder: 0 };
            let codes = self.codes.get_or_init(|| {
                let mut codes = vec![SizeCodes::NO_BLOCK; 0x3000 / 16];
                for block in BLOCKS {
                    codes[sizes.index(block.start)] = sizes.code(block.usable);
                }
                codes
            });
            (index == 0).then_some(RegionBlocks { region: Region(0), sizes, codes })
        }

        fn around_begin(&self, address: usize) -> AroundBegin {
            let is_in = |block: &&Block| (0..block.usable).contains(&(address - block.start));
            let mut before = BLOCKS.iter().filter(|block| block.start <= address);
            before.find(is_in).map_or(AroundBegin::NoBlock, |block| AroundBegin::Block {
                start: block.start,
                usable: block.usable,
            })
        }

        fn position(&self) -> Position {
            Position::default()
        }

        fn roll_back(&self, _: Position) {}
    }

    #[test]
    fn with_gaps_a_node_is_what_was_there_or_else_computed_without_a_search() {
        // An address in a node, its supposed offset and size, the bytes and the computed ones, and
        // the claimed block.
        for (inside, offset, size, expected, block) in [
            (0x1010, 0x10, 100, (112, 0), Some((0x1000, 112))),
            // The offset is some bytes too small.
            (0x1018, 0x10, 100, (112, 0), Some((0x1000, 112))),
            // The layout is another one.
            (0x1050, 0x10, 100, (112, 0), Some((0x1000, 112))),
            (0x2010, 0x10, 400, (48, 0), Some((0x2000, 48))),
            // It is from before tracking.
            (0x1070, 0x10, 100, (100, 100), None),
            (0x5010, 0x10, 100, (100, 100), None),
        ] {
            let (tracker, recorder) = (Few::leaked(&BLOCKS), FromBegin::default());
            let collection = Collection::new(SizeSource::Table(tracker), Some(&recorder));
            let measured = measure_with(&collection, &(), |(), ops| {
                ops.enclosing_block_at(without_provenance(inside), offset, size);
            });
            assert_eq!((measured.bytes, measured.computed), expected, "{inside:x}");
            let sizes = |usable| ExpectedSizes { requested: None, usable };
            let claims = block.map(|(start, usable)| (start, sizes(usable)));
            assert_eq!(recorder.claims.take(), Vec::from_iter(claims), "{inside:x}");
            assert_eq!(tracker.searches.load(Relaxed), 0);
        }
    }

    #[cfg(feature = "bytes")]
    #[test]
    fn with_gaps_memory_without_known_owners_is_what_was_there_or_else_computed() {
        use crate::measure::ops::SharedMemory;
        use crate::tracker::words::words_of;

        let words = [7_usize];
        for (address, expected, block) in
            [(0x1010, (112, 0), Some((0x1000, 112))), (0x5010, (20, 20), None)]
        {
            let (tracker, recorder) = (Few::leaked(&BLOCKS), FromBegin::default());
            let collection = Collection::new(SizeSource::Table(tracker), Some(&recorder));
            let measured = measure_with(&collection, &(), |(), ops| {
                let memory = SharedMemory { address, bytes: 20, owners: 1 };
                // SAFETY: no block starts at 7.
                unsafe { ops.shared_memory(&words_of(&words), |_| true, memory) };
            });
            assert_eq!((measured.bytes, measured.computed), expected, "{address:x}");
            let claims =
                block.map(|(start, usable)| (start, ExpectedSizes { requested: None, usable }));
            assert_eq!(recorder.claims.take(), Vec::from_iter(claims), "{address:x}");
            assert_eq!(tracker.searches.load(Relaxed), 0, "{address:x}");
        }
    }
}

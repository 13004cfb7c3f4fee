//! Collects the blocks that a collection claims, and passes them on together.
//!
//! The memory that a claim reads is mostly not in the cache, and each claim is a call through a
//! pointer. The recorder prefetches for a batch, and claims it in a later call. Claims keep the
//! order in which they are made. Most of them take no look-up: the recorder has the size, and
//! verifies the claim later.
//!
//! Other claims do not wait (`at_once`).
//!
//! For a size query the block must be alive. So it waits no longer than its borrow lasts, also if a
//! panic ends it.
#![expect(unsafe_code, reason = "asks the allocator about blocks that are borrowed meanwhile")]

mod at_once;
#[cfg(all(test, feature = "std"))]
mod tests;

use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::ptr::{null, without_provenance};

use super::collection::Claiming;
use super::{Collection, Ops};
use crate::allocator::size_source::SizeSource;
use crate::tracker::claim::{
    AtBegin, Claim, ExpectedBlock, ExpectedBlocks, ExpectedSizes, Found, Place, SizeFrom, Wrong,
};
use crate::tracker::claimant::Claimant;

/// The number of blocks in a batch, which is claimed by one call.
const BATCH: usize = 32;

/// The number of blocks that wait. All but one batch of them are prefetched.
const RING: usize = 2 * BATCH;

/// The most blocks that are looked up without a prefetch, as after a short borrow.
const FEW: usize = 2;

/// The blocks and claims that wait, in the order in which they were added.
pub(super) struct Pending {
    /// Invariant: a block whose size the allocator may report is alive until it is looked up.
    blocks: [ExpectedBlock; RING],
    /// The place of the next block; `RING` stands for the first one.
    next: Cell<usize>,
    /// The number of blocks in full batches before that place, which are prefetched for.
    prefetched: Cell<usize>,
    /// Claims that are looked up already, and wait so that the recorder receives them in order.
    answered: RefCell<VecDeque<(Claim, Found)>>,
}

impl Pending {
    pub(super) fn new() -> Self {
        Pending {
            blocks: core::array::from_fn(|_| ExpectedBlock::new(null(), 0)),
            next: Cell::new(0),
            prefetched: Cell::new(0),
            answered: RefCell::new(VecDeque::new()),
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.next.get() | self.prefetched.get() == 0
    }

    /// Has the sizes of all pending blocks computed that the allocator would report.
    #[cold]
    fn query_none(&self) {
        for block in &self.blocks {
            if block.size_from.get().alignment().is_some() {
                block.size_from.set(SizeFrom::Request);
            }
        }
    }
}

/// Claims a block that is borrowed, of this size and with this way to find its usable bytes.
///
/// # Safety
///
/// The block is a live one of the global allocator with this size, and the alignment of the query,
/// until the `Ops` have no work left.
// A pointer, since a call of it is shorter than the choice, and the code of a measurement without
// claims gets no longer, and no slower.
pub(super) type ClaimOwnBlock = unsafe fn(&Ops<'_>, *const u8, usize, SizeFrom, &Pending);

impl Claiming {
    /// Returns the function that claims so.
    pub(super) fn of_own_block(self) -> ClaimOwnBlock {
        match self {
            Claiming::Later => |ops, start, size, query, pending| {
                ops.wait(pending, start, size, query);
            },
            // SAFETY: the caller's contract.
            Claiming::ByClass => |ops, start, size, query, _| unsafe {
                ops.claim_by_class::<true>(start, size, query);
            },
            // SAFETY: the caller's contract.
            Claiming::ByQuery => |ops, start, size, query, _| unsafe {
                ops.claim_by_class::<false>(start, size, query);
            },
            // SAFETY: the caller's contract; sizes are in the words before blocks.
            Claiming::BySizeWord => |ops, start, size, query, _| unsafe {
                ops.claim_by_size_word(start, size, query);
            },
        }
    }
}

impl Ops<'_> {
    /// Adds a block whose entry of the table is looked up later. If an incomplete table does not
    /// have it, its size is computed.
    #[inline(always)]
    pub(super) fn expect_block(&self, pending: &Pending, start: *const u8, size: usize) {
        self.expect(pending, start, size, SizeFrom::Request);
    }

    /// Adds a block as [`expect_block`](Self::expect_block) does, whose usable bytes are those of
    /// its size class.
    #[cfg(feature = "bytes")]
    #[inline(always)]
    pub(super) fn expect_small_block(
        &self,
        pending: &Pending,
        start: *const u8,
        size: usize,
        usable: usize,
    ) {
        if self.collection.is_checked() {
            self.claim_small::<true>(start, size, usable);
        } else if self.collection.claims_at_once() {
            self.claim_small::<false>(start, size, usable);
        } else {
            self.expect_block(pending, start, size);
        }
    }

    /// Adds a block as [`expect_block`](Self::expect_block) does, which nobody has looked for in
    /// the table yet. Where the table has gaps, its bytes are computed if it was not there when the
    /// collection began.
    #[cfg(feature = "bytes")]
    pub(super) fn expect_supposed_block(&self, pending: &Pending, start: *const u8, size: usize) {
        if self.collection.claims_at_once() {
            match self.collection.known_blocks.as_ref().map(|known| known.at(start.addr())) {
                Some(AtBegin::Usable(usable)) if self.collection.classes.may_have(usable, size) => {
                    let requested = Some(size);
                    return self.claim_known(start, ExpectedSizes { requested, usable });
                }
                Some(AtBegin::NoBlock) if self.collection.has_gaps() => {
                    return self.count_computed(size);
                }
                _ => {}
            }
        }
        self.expect_block(pending, start, size);
    }

    /// Adds a block of unknown layout that was there when the collection began, as the recorder
    /// knows, with its usable bytes.
    pub(super) fn expect_found_block(&self, pending: &Pending, start: usize, usable: usize) {
        if self.collection.claims_at_once() {
            return self.claim_found_block(start, usable);
        }
        let start = without_provenance(start);
        // `wait` takes the same place.
        pending.blocks[pending.next.get() % RING].usable.set(usable);
        self.wait(pending, start, ExpectedBlock::NO_SIZE, SizeFrom::Known);
    }

    #[inline(always)]
    fn expect(&self, pending: &Pending, start: *const u8, size: usize, size_from: SizeFrom) {
        if self.collection.claims_at_once() {
            let block = ExpectedBlock::new(start, size);
            block.size_from.set(size_from);
            return self.claim_at_once(&block);
        }
        self.wait(pending, start, size, size_from);
    }

    /// Adds a block to those that wait.
    #[inline(always)]
    fn wait(&self, pending: &Pending, start: *const u8, size: usize, size_from: SizeFrom) {
        let Pending { blocks, next, .. } = pending;
        let place = next.get() % RING;
        let block = &blocks[place];
        block.start.set(start);
        block.size.set(size);
        block.field.set(self.field.get());
        block.size_from.set(size_from);
        next.set(place + 1);
        if (place + 1) % BATCH == 0 {
            self.look_up_prefetched(pending);
        }
    }

    /// Records an answered claim: at once, or behind the blocks that wait.
    #[cold]
    pub(super) fn record_later(&self, pending: &Pending, claim: Claim, found: Found) {
        if let Some(recorder) =
            self.collection.recorder.filter(|_| self.collection.claims_at_once())
        {
            return recorder.claimed(claim, found, self.claimant());
        }
        pending.answered.borrow_mut().push_back((claim, found));
        let address = without_provenance(claim.address);
        self.wait(pending, address, ExpectedBlock::NO_SIZE, SizeFrom::Answered);
    }

    /// Prefetches the entries of a full batch, and looks up the oldest one, whose place is needed.
    #[cold]
    #[inline(never)]
    fn look_up_prefetched(&self, pending: &Pending) {
        let Pending { blocks, next, prefetched, .. } = pending;
        let next = next.get() % RING;
        let newest = &blocks[(next + RING - BATCH) % RING..][..BATCH];
        if prefetched.get() < RING - BATCH {
            prefetched.set(prefetched.get() + BATCH);
            self.look_up_blocks(&[], newest);
        } else {
            self.look_up_blocks(&blocks[next..][..BATCH], newest);
        }
    }

    /// Looks up all pending blocks, and counts them for the current part.
    #[inline]
    pub(super) fn look_up_pending(&self) {
        if let Some(pending) = self.pending {
            if !pending.is_empty() {
                self.empty(pending);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn empty(&self, Pending { blocks, next, prefetched, .. }: &Pending) {
        let (end, prefetched) = (next.replace(0), prefetched.replace(0));
        let begin = end / BATCH * BATCH;
        let newest = &blocks[begin..end];
        if prefetched == 0 && newest.len() <= FEW {
            return self.look_up_blocks(newest, &[]);
        }
        let full_batch = |before| &blocks[(begin + RING - BATCH - before) % RING..][..BATCH];
        self.look_up_blocks(&[], newest);
        for before in (0..prefetched).step_by(BATCH).rev() {
            self.look_up_blocks(full_batch(before), &[]);
        }
        self.look_up_blocks(newest, &[]);
    }

    fn look_up_blocks(&self, blocks: &[ExpectedBlock], next: &[ExpectedBlock]) {
        let Some(recorder) = self.collection.recorder else { return };
        let missed = |block: &ExpectedBlock| self.look_up_missed(block);
        let batch = ExpectedBlocks {
            blocks,
            next,
            missed: &missed,
            usable_size: self.collection.usable_size,
            classes: self.collection.classes,
        };
        let counted = recorder.claimed_expected(batch, self.collection.reporter.get());
        self.sums.count_blocks(counted);
    }

    /// Looks up a block that the quick look-up cannot decide, or records an answered claim.
    #[cold]
    fn look_up_missed(&self, block: &ExpectedBlock) {
        let SizeSource::Table(tracker) = self.collection.sizes else { return };
        let (claim, found) = if block.size_from.get() == SizeFrom::Answered {
            let answered =
                self.pending.and_then(|pending| pending.answered.borrow_mut().pop_front());
            let Some(answered) = answered else { return };
            answered
        } else {
            let (address, size) = (block.start().addr(), block.requested());
            let claim = Claim { address, size, place: Place::Start };
            let mut found = tracker.look_up(claim);
            let Some(bytes) = self.bytes_of_missed(block, found) else { return };
            found.bytes = bytes;
            if bytes > 0 {
                self.count(bytes);
            }
            (claim, found)
        };
        if let Some(recorder) = self.collection.recorder {
            let (reporter, field) = (self.collection.reporter.get(), block.field());
            recorder.claimed(claim, found, Claimant { reporter, field });
        }
    }

    /// Returns the bytes to count for a block with this answer of the table. Returns `None` if they
    /// are counted as computed ones: a table with gaps does not have the block, and its
    /// size is not known otherwise.
    fn bytes_of_missed(&self, block: &ExpectedBlock, found: Found) -> Option<usize> {
        let size_from = block.size_from.get();
        if found.wrong.is_some() && self.collection.is_checked() && size_from.may_be_of_class() {
            // As if the walk had added it.
            return Some(self.collection.classes.usable(block.size()).unwrap_or(found.bytes));
        }
        if found.wrong != Some(Wrong::Untracked) {
            // The table has it, or knows what is wrong with the claim.
            return Some(found.bytes);
        }
        let computed = match (block.known(), size_from.alignment()) {
            (Some(ExpectedSizes { requested: Some(_), usable }), _) => return Some(usable),
            (Some(ExpectedSizes { requested: None, usable }), _) => usable,
            (None, Some(alignment)) => {
                let (start, layout) = (block.start(), alignment.layout(block.size()));
                // SAFETY: alive, by the invariant of the pending blocks.
                return Some(unsafe { (self.collection.usable_size)(start, layout) });
            }
            (None, None) => block.size(),
        };
        self.count_computed(computed);
        None
    }
}

impl ExpectedBlocks<'_> {
    /// Returns the usable bytes of one of the blocks, if they follow from the block that was at its
    /// address when the collection began: `code` is that one's `usable` bytes / 16 + 1, 0 if there
    /// was none, or 255 if they are not known.
    ///
    /// Another block may have been there at the beginning. So they are taken only if blocks of this
    /// size have so many.
    #[inline(always)]
    #[must_use]
    pub fn quick_answer(
        &self,
        block: &ExpectedBlock,
        (code, usable): (u8, usize),
    ) -> Option<usize> {
        let may_be = block.size_from.get().may_be_of_class();
        (may_be && self.classes.has(code, usable, block.size.get())).then_some(usable)
    }

    /// Returns the sizes of one of the blocks: as the allocator reports them if the block is
    /// borrowed, or as they were when the collection began if blocks of this size may have so many
    /// bytes. Returns `None` if neither is known.
    #[inline(always)]
    #[must_use]
    pub fn sizes(&self, block: &ExpectedBlock, at_begin: AtBegin) -> Option<ExpectedSizes> {
        let size = block.size.get();
        match block.size_from.get() {
            SizeFrom::Query(alignment) | SizeFrom::AlignedQuery(alignment) => {
                let layout = alignment.layout(size);
                // SAFETY: alive, by the invariant of the pending blocks.
                let usable = unsafe { (self.usable_size)(block.start.get(), layout) };
                Some(ExpectedSizes { requested: Some(size), usable })
            }
            SizeFrom::Known => block.known(),
            SizeFrom::Request => match at_begin {
                AtBegin::Usable(usable) if self.classes.may_have(usable, size) => {
                    Some(ExpectedSizes { requested: Some(size), usable })
                }
                _ => None,
            },
            SizeFrom::Answered => None,
        }
    }
}

/// A guard of a borrow. If a panic ends it, blocks are still pending, and may be freed from then
/// on: none of them is queried any more, and claims are checked now.
pub(super) struct EndOfBorrow<'p> {
    pub(super) pending: &'p Pending,
    pub(super) collection: &'p Collection<'p>,
}

impl Drop for EndOfBorrow<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.pending.is_empty() {
            self.pending.query_none();
        }
        self.collection.check_claims();
    }
}

//! Claims blocks at once: with the word before the block or the allocator's answer where the table
//! has gaps, and with size classes where these tell sizes.
//!
//! Such a claim reads no memory of the recorder's, and mostly takes no call. Unless the table has
//! gaps, the recorder checks later that there is such a block.
#![expect(unsafe_code, reason = "asks the allocator about blocks that are borrowed meanwhile")]

use core::ptr::without_provenance;

use super::{Collection, Ops};
use crate::tracker::claim::{ExpectedBlock, ExpectedSizes, SizeFrom};
use crate::tracker::claim_batch::QuickClaims;

impl Collection<'_> {
    /// Has the recorder check the claims that it has not checked yet.
    #[inline]
    pub(super) fn check_claims(&self) {
        if let (Some(recorder), Some(quick)) = (self.recorder, self.quick_claims) {
            if !quick.batch.unchecked().is_empty() {
                recorder.check_quick_claims();
            }
        }
    }
}

impl Ops<'_> {
    /// Claims a block by its size class. If that does not tell its size, the recorder does, where
    /// it checks claims, or else the allocator.
    ///
    /// # Safety
    ///
    /// That of [`ClaimOwnBlock`](super::ClaimOwnBlock).
    // Without a call but at the end: it saves no registers.
    #[inline(always)]
    pub(super) unsafe fn claim_by_class<const IS_CHECKED: bool>(
        &self,
        start: *const u8,
        size: usize,
        query: SizeFrom,
    ) {
        if query.may_be_of_class() {
            if let Some(usable) = self.collection.classes.usable(size) {
                return self.claim_small::<IS_CHECKED>(start, size, usable);
            }
        }
        if IS_CHECKED {
            // SAFETY: the caller's contract.
            unsafe { self.claim_by_recorder(start, size, query) }
        } else {
            // SAFETY: the caller's contract.
            unsafe { self.claim_by_query(start, size, query) }
        }
    }

    /// Claims a block with the size in the word before it, or else with the answer of the query.
    ///
    /// # Safety
    ///
    /// That of [`ClaimOwnBlock`](super::ClaimOwnBlock), and sizes are in the words before blocks.
    #[inline(always)]
    pub(super) unsafe fn claim_by_size_word(&self, start: *const u8, size: usize, query: SizeFrom) {
        // SAFETY: the caller's contract.
        match unsafe { size_by_word(start) } {
            Some(usable) => {
                self.claim_known(start, ExpectedSizes { requested: Some(size), usable });
            }
            // SAFETY: the caller's contract.
            None => unsafe { self.claim_by_query(start, size, query) },
        }
    }

    /// Claims a block that has these usable bytes by its size class. If it `IS_CHECKED`, the
    /// recorder checks later that there is such a block.
    #[inline(always)]
    pub(super) fn claim_small<const IS_CHECKED: bool>(
        &self,
        start: *const u8,
        size: usize,
        usable: usize,
    ) {
        if let Some(quick) = &self.collection.quick_claims {
            if quick.push_small(start.addr(), (size, usable), self.field.get(), IS_CHECKED) {
                return self.count(usable);
            }
        }
        self.claim_known_slowly(start, size, usable);
    }

    /// Claims a block by a call of the recorder, which has the size from the table, or from the
    /// allocator for a block of the copy.
    ///
    /// # Safety
    ///
    /// That of [`ClaimOwnBlock`](super::ClaimOwnBlock).
    #[inline(never)]
    unsafe fn claim_by_recorder(&self, start: *const u8, size: usize, query: SizeFrom) {
        let block = ExpectedBlock::new(start, size);
        block.size_from.set(query);
        self.claim_at_once(&block);
    }

    /// Claims a block with the size that the allocator reports.
    ///
    /// # Safety
    ///
    /// That of [`ClaimOwnBlock`](super::ClaimOwnBlock).
    #[inline(never)]
    unsafe fn claim_by_query(&self, start: *const u8, size: usize, query: SizeFrom) {
        let Some(alignment) = query.alignment() else { return self.count_computed(size) };
        // SAFETY: the caller's contract, for the allocator of the declaration.
        let usable = unsafe { (self.collection.usable_size)(start, alignment.layout(size)) };
        self.claim_known(start, ExpectedSizes { requested: Some(size), usable });
    }

    /// Claims a block that was there when the collection began, with its usable bytes.
    #[inline(always)]
    pub(super) fn claim_found_block(&self, start: usize, usable: usize) {
        let quick = self.collection.quick_claims.as_ref();
        if quick.is_some_and(|quick| quick.push_found(start, usable, self.field.get())) {
            return self.count(usable);
        }
        self.claim_known_slowly(without_provenance(start), ExpectedBlock::NO_SIZE, usable);
    }

    /// Claims a block whose sizes are known.
    #[inline(always)]
    pub(super) fn claim_known(&self, start: *const u8, sizes: ExpectedSizes) {
        let claim = |quick: QuickClaims<'_>| quick.push(start.addr(), sizes, self.field.get());
        if self.collection.quick_claims.is_some_and(claim) {
            return self.count(sizes.usable);
        }
        let requested = sizes.requested.unwrap_or(ExpectedBlock::NO_SIZE);
        self.claim_known_slowly(start, requested, sizes.usable);
    }

    /// Claims a block whose sizes are known, by a call of the recorder.
    #[cold]
    #[inline(never)]
    fn claim_known_slowly(&self, start: *const u8, requested: usize, usable: usize) {
        // Mostly the array is full.
        if let (Some(recorder), Some(quick)) =
            (self.collection.recorder, self.collection.quick_claims)
        {
            if quick.batch.free().is_empty() {
                recorder.make_room();
                let requested = (requested != ExpectedBlock::NO_SIZE).then_some(requested);
                let sizes = ExpectedSizes { requested, usable };
                if quick.push(start.addr(), sizes, self.field.get()) {
                    return self.count(usable);
                }
            }
        }
        let block = ExpectedBlock::new(start, requested);
        // Otherwise the recorder finds the sizes in the table, and checks the claim.
        if self.collection.has_gaps() || requested == ExpectedBlock::NO_SIZE {
            block.usable.set(usable);
            block.size_from.set(SizeFrom::Known);
        }
        self.claim_at_once(&block);
    }

    /// Claims a block that would otherwise wait.
    #[cold]
    pub(super) fn claim_at_once(&self, block: &ExpectedBlock) {
        block.field.set(self.field.get());
        self.look_up_blocks(core::slice::from_ref(block), &[]);
    }

    /// Looks up all pending blocks, and has all claims checked: their blocks may be freed next.
    #[inline]
    pub(in crate::measure::ops) fn end_claims(&self) {
        self.look_up_pending();
        self.collection.check_claims();
    }
}

/// Returns the usable bytes of a block by the word before it, or `None` if that does not tell.
///
/// # Safety
///
/// `block` is a live block of the global allocator, and sizes are in the words before blocks.
#[inline(always)]
unsafe fn size_by_word(block: *const u8) -> Option<usize> {
    #[cfg(feature = "std")]
    // SAFETY: the caller's contract.
    return unsafe { crate::allocator::system::size_by_word(block) };
    #[cfg(not(feature = "std"))]
    {
        let _ = block;
        None
    }
}

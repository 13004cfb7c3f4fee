//! Decides which owner counts a block that has several owners.
#![expect(unsafe_code, reason = "hands on what is known of the block")]

use core::alloc::Layout;

use super::Ops;
use crate::allocator::size_source::SizeSource;
use crate::field::{Field, Shared};

/// The parts of a shared block that are counted here.
pub(crate) struct Share {
    pub(crate) block: bool,
    pub(crate) contents: bool,
}

impl Ops<'_> {
    /// Adds a block with several owners, of which this is one. Returns whether to measure its
    /// contents here.
    ///
    /// # Safety
    ///
    /// The contract of [`block`](Self::block).
    pub unsafe fn shared_block<T: ?Sized>(
        &self,
        start: *const T,
        layout: Layout,
        owners: usize,
    ) -> bool {
        let share = self.share_of(start.cast::<u8>().addr(), owners);
        if share.block {
            // SAFETY: the caller's contract is passed through.
            unsafe { self.block(start, layout) };
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

    /// Returns whether a block that others may own as well is counted here.
    #[cfg(feature = "malloc_size_of")]
    pub(crate) fn is_counted_here(&self, start: *const core::ffi::c_void) -> bool {
        self.share_of(start.addr(), usize::MAX).block
    }

    /// Returns whether the shared block at this address is counted here, and whether its contents
    /// are.
    pub(crate) fn share_of(&self, address: usize, owners: usize) -> Share {
        match self.field.get().map(Field::ownership).unwrap_or_default() {
            Shared::Elsewhere => Share { block: false, contents: false },
            // Visited contents are not measured again: in a cycle they own this block themselves.
            Shared::Here => Share { block: true, contents: self.collection.visit(address) },
            Shared::First => {
                let first = owners <= 1 || self.collection.visit(address);
                Share { block: first, contents: first }
            }
        }
    }
}

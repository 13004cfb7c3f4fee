//! Blocks with several owners: by whom they are counted.
#![expect(unsafe_code, reason = "hands on what is known of the block")]

use core::alloc::Layout;

use super::Ops;
use crate::allocator::size_source::SizeSource;
use crate::field::{Field, Shared};

/// What is to be counted of a shared block.
pub(crate) struct Share {
    pub(crate) block: bool,
    pub(crate) contents: bool,
}

impl Ops<'_> {
    /// A block with several owners, of which this is one. Says whether its contents are to be measured here.
    ///
    /// # Safety
    ///
    /// As for [`block`](Self::block).
    pub unsafe fn shared_block<T: ?Sized>(
        &self,
        start: *const T,
        layout: Layout,
        owners: usize,
    ) -> bool {
        let share = self.shares(start.cast::<u8>().addr(), owners);
        if share.block {
            // SAFETY: handed on.
            unsafe { self.block(start, layout) };
        }
        share.contents
    }

    /// As [`shared_block`](Self::shared_block), for one whose layout is as std's was when this was written: where the table does not
    /// agree, it is found by an address in it.
    ///
    /// # Safety
    ///
    /// As for [`block`](Self::block).
    pub(crate) unsafe fn counted_block(
        &self,
        start: *const u8,
        layout: Layout,
        owners: usize,
    ) -> bool {
        if let SizeSource::Table(tracker) = self.collection.sizes {
            if tracker.whole(start.addr(), layout.size()).is_none() && tracker.knows_all() {
                return self.shared_enclosing_block(start, layout.size(), owners);
            }
        }
        // SAFETY: handed on.
        unsafe { self.shared_block(start, layout, owners) }
    }

    /// Whether a block that others may own as well is counted here.
    #[cfg(feature = "malloc_size_of")]
    pub(crate) fn is_counted_here(&self, start: *const core::ffi::c_void) -> bool {
        self.shares(start.addr(), usize::MAX).block
    }

    /// Whether the shared block at this address is counted here, and whether its contents are.
    pub(crate) fn shares(&self, address: usize, owners: usize) -> Share {
        match self.field.get().map(Field::ownership).unwrap_or_default() {
            Shared::Elsewhere => Share { block: false, contents: false },
            // Contents that were met are not gone into again: they may own this block themselves, in a circle.
            Shared::Here => Share { block: true, contents: self.collection.meet(address) },
            Shared::First => {
                let first = owners <= 1 || self.collection.meet(address);
                Share { block: first, contents: first }
            }
        }
    }
}

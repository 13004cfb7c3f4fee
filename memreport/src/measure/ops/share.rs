//! Decides which owner counts a block that has several owners.

use super::Ops;
use crate::field::{Field, Shared};

/// The parts of a shared block that are counted here.
pub(super) struct Share {
    pub(super) block: bool,
    pub(super) contents: bool,
}

impl Ops<'_> {
    /// Returns whether a block that others may own as well is counted here.
    #[cfg(feature = "malloc_size_of")]
    pub(crate) fn is_counted_here(&self, start: *const core::ffi::c_void) -> bool {
        self.share_of(start.addr(), usize::MAX).block
    }

    /// Returns whether the shared block at this address is counted here, and whether its contents
    /// are.
    pub(super) fn share_of(&self, address: usize, owners: usize) -> Share {
        match self.field.get().map(Field::ownership).unwrap_or_default() {
            Shared::Elsewhere => Share { block: false, contents: false },
            // Visited contents are not measured again: in a cycle they own this block themselves.
            Shared::Here => Share { block: true, contents: self.collection.visit(address) },
            Shared::First => {
                // A block with one owner is not remembered, which would cost each `Arc` a look-up.
                // If another thread makes a second owner meanwhile, that one counts it again.
                let first = owners <= 1 || self.collection.visit(address);
                Share { block: first, contents: first }
            }
        }
    }
}

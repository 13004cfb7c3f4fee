//! Defines the interface to a tracking allocator. The crate `dmd` implements it; measuring calls
//! it.

pub(crate) mod words;
pub(crate) mod prefetch;
pub(crate) mod claim;
pub(crate) mod size_classes;
pub(crate) mod claimant;
pub(crate) mod short_claim;
pub(crate) mod claim_batch;
pub(crate) mod region_blocks;
pub(crate) mod recorder;
#[cfg(feature = "std")]
pub(crate) mod attribution;
#[cfg(feature = "std")]
pub(crate) mod findings;

#[cfg(feature = "std")]
use alloc::{boxed::Box, string::String};

use claim::{Claim, Found};
#[cfg(feature = "std")]
use findings::Recording;

/// An allocator that records every live block of the program. Hidden from the documentation: it
/// exists for the crate `dmd`.
pub trait Tracker: Sync {
    /// Returns whether the block table is maintained at this moment.
    fn is_awake(&self) -> bool;

    /// Returns whether every live block is in the table. It is not if tracking began late, was
    /// paused, or samples blocks.
    fn tracks_every_block(&self) -> bool;

    /// Returns whether the blocks of C's `malloc` are in the table, and counted as the heap's.
    fn tracks_c_heap(&self) -> bool {
        false
    }

    /// Returns the tracking state for people, such as `live, full stacks`.
    #[cfg(feature = "std")]
    fn state(&self) -> String;

    /// Looks up the claimed address in the table alone. The block's memory is never touched.
    fn look_up(&self, claim: Claim) -> Found;

    /// Returns the usable bytes of a block that starts at `start` and was allocated with `size`
    /// bytes.
    ///
    /// Returns `None` where the table has no such entry, or the quick look-up cannot decide. The
    /// caller then uses [`look_up`](Self::look_up).
    fn exact_block(&self, start: usize, size: usize) -> Option<usize>;

    /// Returns the address of the table's entry for a block, so that it can be prefetched. Any
    /// address if there is no entry.
    fn entry_address(&self, address: usize) -> *const u8;

    /// Begins a collection: the tracker distinguishes blocks allocated from now on from older ones.
    /// Collections never overlap.
    #[cfg(feature = "std")]
    fn begin(&self) -> Box<dyn Recording>;

    /// Marks this thread as one of ours: it is left out of logs of single allocations.
    fn mark_own_thread(&self) {}

    /// Reports the tracker's own memory as path, bytes and description. None of it is on the
    /// program's heap.
    fn own_memory(&self, report: &mut dyn FnMut(&'static str, usize, &'static str));
}

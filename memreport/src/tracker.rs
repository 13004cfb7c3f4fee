//! Defines the interface to a tracking allocator. The crate `dmd` implements it; measuring calls it.

pub(crate) mod claim;
pub(crate) mod recorder;
#[cfg(feature = "std")]
pub(crate) mod findings;

#[cfg(feature = "std")]
use alloc::{boxed::Box, string::String};

use claim::{Claim, Found};
#[cfg(feature = "std")]
use findings::Recording;

/// Knows every live block of the program. Not part of the public interface: made for the crate `dmd`.
pub trait Tracker: Sync {
    /// Whether the table of blocks is kept at this moment.
    fn is_awake(&self) -> bool;

    /// Whether every live block is in the table: not so where tracking began late, was off for a time, or takes samples.
    fn knows_all(&self) -> bool;

    /// What it tracks at this moment, in words: `live, full stacks`.
    #[cfg(feature = "std")]
    fn state(&self) -> String;

    /// What lies at the claimed address, by the table alone: the memory is never touched.
    fn look_up(&self, claim: Claim) -> Found;

    /// The usable bytes of the block that starts here, if it was made with this size. Where it is not as simple as that, `None`:
    /// then [`look_up`](Self::look_up) says what there is.
    fn whole(&self, start: usize, size: usize) -> Option<usize>;

    /// Where the table keeps what it knows of a block at this address, to be fetched ahead; anywhere, if nothing is kept.
    fn kept_at(&self, address: usize) -> *const u8;

    /// Begins a collection: from here on, new blocks are told from old ones. Collections never overlap.
    #[cfg(feature = "std")]
    fn begin(&self) -> Box<dyn Recording>;

    /// Whatever the tracker uses for itself, as (path, bytes, description); none of it is on the program's heap.
    fn own_memory(&self, report: &mut dyn FnMut(&'static str, usize, &'static str));
}

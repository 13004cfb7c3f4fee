//! The tables of this process.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::blocks::{Blocks, Granule};
use super::freed_counts::FreedCounts;

/// Every live block that was inserted while the tracker was awake.
pub(crate) static BLOCKS: Blocks = Blocks::new();

/// The counts of freed blocks, in modes that keep them.
pub(crate) static FREED: FreedCounts = FreedCounts::new();

/// The spacing of the declared allocator's blocks; 0 before the first block.
static SPACING: AtomicUsize = AtomicUsize::new(0);

/// Stores the spacing of the declared allocator's blocks, before the first block is inserted.
pub(crate) fn set_spacing(bytes: usize) {
    SPACING.store(bytes, Relaxed);
}

/// Returns the granule of the table; `None` if the program's allocator is not DMD's.
pub(crate) fn granule() -> Option<Granule> {
    // Relaxed: it is stored before the first block is returned to the program, and never changes.
    match SPACING.load(Relaxed) {
        0 => None,
        bytes => Some(Granule::of_spacing(bytes)),
    }
}

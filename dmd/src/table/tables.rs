//! The tables of this process.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use super::blocks::{Blocks, Granule};
use super::freed_counts::FreedCounts;
use crate::sample::plan;

/// Every live block that was inserted while the tracker was awake.
pub(crate) static BLOCKS: Blocks = Blocks::new();

/// The counts of freed blocks, in modes that keep them.
pub(crate) static FREED: FreedCounts = FreedCounts::new();

/// The granule of the declared allocator, packed; 0 before the first block.
static GRANULE: AtomicU8 = AtomicU8::new(0);

/// Stores the granule of the declared allocator, before the first block is inserted.
pub(crate) fn set_granule(granule: Granule) {
    GRANULE.store(granule.packed(), Relaxed);
}

/// Returns the granule of the table; `None` if the program's allocator is not DMD's.
pub(crate) fn granule() -> Option<Granule> {
    // Relaxed: it is stored before the first block is returned to the program, and never changes.
    Granule::from_packed(GRANULE.load(Relaxed))
}

/// Returns whether live blocks may be missing from the table: tracking began late or was off for a
/// while, or memory was short.
pub(crate) fn has_gaps() -> bool {
    plan::has_gaps() || BLOCKS.lost() > 0
}

/// Returns whether the table has every block of the program, from its start on.
pub(crate) fn has_every_block() -> bool {
    plan::plan().inserts_all() && !has_gaps()
}

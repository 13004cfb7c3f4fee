//! The blocks that the table lacks: from before tracking began, from a pause, or unsampled.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// True if live blocks may be missing from the table.
static HAS_GAPS: AtomicBool = AtomicBool::new(false);

/// The most live bytes and blocks that the gaps before tracking began and while it was off can
/// contain. Unsampled blocks of a profile are not in them.
static GAP_BYTES: AtomicU64 = AtomicU64::new(0);
static GAP_BLOCKS: AtomicU64 = AtomicU64::new(0);

/// The most that gaps can contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GapLimit {
    pub(crate) bytes: u64,
    pub(crate) blocks: u64,
}

/// Returns whether live blocks may be missing from the table.
pub(crate) fn has_gaps() -> bool {
    HAS_GAPS.load(Acquire)
}

/// Notes that live blocks may be missing from the table.
pub(super) fn note() {
    // Release, with the Acquire of `has_gaps`: a reader that misses a block also sees the gap.
    HAS_GAPS.store(true, Release);
}

/// Returns the most that the gaps before tracking began and while it was off can contain.
pub(super) fn limit() -> GapLimit {
    GapLimit { bytes: GAP_BYTES.load(Relaxed), blocks: GAP_BLOCKS.load(Relaxed) }
}

/// Notes that the gaps can contain any number of live blocks.
pub(crate) fn set_unknown() {
    set(GapLimit { bytes: u64::MAX, blocks: u64::MAX });
}

/// Notes that the gaps contain at most what is live now.
pub(super) fn limit_to_live() {
    let live = memreport::heap_counters().unwrap_or_default();
    set(GapLimit { bytes: live.live_bytes(), blocks: live.live_blocks() });
}

fn set(GapLimit { bytes, blocks }: GapLimit) {
    GAP_BYTES.store(bytes, Relaxed);
    GAP_BLOCKS.store(blocks, Relaxed);
}
